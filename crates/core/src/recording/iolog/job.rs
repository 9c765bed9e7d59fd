//! The job of fio's that makes the calls of a log.

use super::Written;

/// A job file: it lays out what the log finds, and then makes its calls, in fio's working
/// directory. `iolog` is the log's path.
pub fn job(written: &Written, iolog: &str) -> String {
    let mut text = String::from(
        "# Run it in a folder of the file system: fio makes its files there.\n\
         [global]\nioengine=psync\n",
    );
    for (name, bytes) in &written.laid {
        // Of reads, a byte at a time is asked for, so that each size is large enough; fio lays out
        // a MiB at a time.
        text += &format!(
            "\n[lay-out-{name}]\nfilename={name}\nfilesize={bytes}\nrw=read\nbs=1,1M\n\
             create_only=1\n"
        );
    }
    // The colon is between the names of several logs.
    text + &format!("\n[replay]\nstonewall\nread_iolog={}\n", iolog.replace(':', "\\:"))
}
