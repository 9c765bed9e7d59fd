//! Attacks: journals, folders, documents and names that somebody else has made.

use std::fs;
use std::path::Path;

use super::{of, run_plan};
use crate::support::Scene;

#[test]
#[ignore = "needs root and loop devices: run ./test"]
fn a_sysctl_stays_below_its_folder_and_may_have_several_numbers() {
    let scene = Scene::alone();
    let file = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    fs::write(file.path(), "precious").unwrap();
    let name = file.path().file_name().unwrap().to_str().unwrap().to_string();
    let printk = fs::read_to_string("/proc/sys/kernel/printk").unwrap();
    let plan = |sysctl: &str| {
        format!(
            r#"
            bed = {{ size = "64M" }}
            judgement = {{ rounds = 1 }}
            contender = [
                {{ name = "plain", file_system = "ext4" }},
                {{ name = "odd", file_system = "ext4", sysctl = {{ {sysctl} }} }},
            ]
            workload = [{{ name = "work", command = "cat /proc/sys/kernel/printk" }}]
            "#
        )
    };
    let plain = name.trim_start_matches('.');
    fs::rename(file.path(), Path::new("/tmp").join(plain)).unwrap();
    for odd in [format!(".tmp.{plain}"), format!("..tmp.{plain}"), format!("//tmp/{plain}")] {
        let _ = fs::remove_dir_all(scene.path("run"));
        let done = run_plan(&scene, &plan(&format!("{odd:?} = \"HELLO\"")));
        let text = fs::read_to_string(Path::new("/tmp").join(plain)).unwrap();
        assert_eq!(text, "precious", "{odd}");
        assert_ne!(done.code, Some(0), "{odd}");
    }
    fs::rename(Path::new("/tmp").join(plain), file.path()).unwrap();
    let _ = fs::remove_dir_all(scene.path("run"));
    let document = run_plan(&scene, &plan("\"kernel.printk\" = \"3 4 1 7\"")).exits(0).json();
    let shown = super::printed(&scene, of(&document, "odd")[0]);
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), ["3", "4", "1", "7"]);
    assert_eq!(fs::read_to_string("/proc/sys/kernel/printk").unwrap(), printk);
    scene.assert_nothing_left();
}
