//! What a run says of its virtual machines, by which one that goes on knows them again.

use std::collections::BTreeMap;

/// What a run says of its machine, each by its name.
pub type Facts = BTreeMap<String, String>;

/// The name of the fact that tells what runs the guests.
pub const MACHINES: &str = "virtual machines";

/// What ends that fact where their processors are emulated.
pub const EMULATED: &str = ", emulated by TCG";

/// What begins the name of the fact by which a kernel is known again, wherever it lies.
pub const BUILD_OF: &str = "build of kernel ";

/// Begins the name of the fact which programs guests with other processors have.
pub const PROGRAMS_FOR: &str = "programs for ";

/// What begins the name of the fact by which the modules are known again that it was given.
pub const MODULES_OF: &str = "modules of kernel ";
