//! What a run says of its virtual machines, by which a resumed run recognises them.

use std::collections::BTreeMap;

/// What a run says of its machine, each by its name.
pub type Facts = BTreeMap<String, String>;

/// The name of the fact that tells what runs the guests.
pub const MACHINES: &str = "virtual machines";

/// Ends that fact if their processors are emulated.
pub const EMULATED: &str = ", emulated by TCG";

/// Begins the name of the fact that identifies a kernel, wherever it lies.
pub const BUILD_OF: &str = "build of kernel ";

/// Begins the name of the fact that tells which programs guests with other processors have.
pub const PROGRAMS_FOR: &str = "programs for ";

/// Begins the name of the fact that identifies the modules it was given.
pub const MODULES_OF: &str = "modules of kernel ";
