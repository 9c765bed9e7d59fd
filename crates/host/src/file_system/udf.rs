//! UDF: mkudffs(8), Documentation/filesystems/udf.rst.

use super::{FileSystem, IN_CLOUD_KERNELS, PLAIN};

pub(super) const UDF: FileSystem = FileSystem {
    name: "udf",
    program: "mkudffs",
    version: &["mkudffs", "--help"],
    // mkudffs(8) has no discard.
    make: |options, site| site.make(&["mkudffs", "--media-type=hd"], options),
    mount: |options, site| site.mount("udf", &[], options),
    // Debian's udftools have no fsck.
    check: None,
    kernels: IN_CLOUD_KERNELS,
    label: Some("-l"),
    without: &["a journal"],
    ..PLAIN
};
