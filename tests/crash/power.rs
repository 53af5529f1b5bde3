//! A disk whose power can be cut: an ext4 image on a loop device, shut down without writing anything back.
//!
//! The shutdown is ext4's own (the one its authors test crashes with): from that moment nothing reaches the image, and what
//! was not synced is lost, in whatever order the system had written it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const IMAGE_BYTES: u64 = 1 << 30;

pub struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// `None` where we may not mount, or the tools are missing.
    pub fn new(name: &str) -> Option<Disk> {
        let disk = Disk { folder: super::victim::fresh_folder(name) };
        std::fs::create_dir(disk.mount_point()).ok()?;
        let image = std::fs::File::create(disk.image()).ok()?;
        image.set_len(IMAGE_BYTES).ok()?;
        if !works(Command::new("mkfs.ext4").arg("-q").arg(disk.image())) || !disk.try_mount() {
            return None;
        }
        let can_cut = disk.try_cut();
        disk.unmount();
        can_cut.then_some(disk)
    }

    /// The power is back: mounts the disk as it is. Mounting what is mounted changes nothing.
    pub fn mount(&self) -> PathBuf {
        let mounted = std::fs::read_to_string("/proc/mounts").expect("the mounts");
        if !mounted.contains(self.mount_point().to_str().expect("text")) {
            assert!(self.try_mount(), "the disk cannot be mounted again");
        }
        self.mount_point()
    }

    pub fn unmount(&self) {
        works(Command::new("umount").arg(self.mount_point()));
    }

    /// Cuts the power.
    pub fn cut(&self) {
        assert!(self.try_cut(), "the power could not be cut");
    }

    fn try_mount(&self) -> bool {
        works(Command::new("mount").args(["-o", "loop"]).arg(self.image()).arg(self.mount_point()))
    }

    /// EXT4_IOC_SHUTDOWN with NOLOGFLUSH. Python, because an ioctl is `unsafe` and this program has none of that.
    fn try_cut(&self) -> bool {
        let script = "import fcntl, os, struct, sys
fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))";
        works(Command::new("python3").args(["-c", script]).arg(self.mount_point()))
    }

    fn image(&self) -> PathBuf {
        self.folder.join("image")
    }

    fn mount_point(&self) -> PathBuf {
        self.folder.join("disk")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.unmount();
        remove(&self.folder);
    }
}

fn remove(folder: &Path) {
    // Not what is mounted: only the folder of the image.
    let _ = std::fs::remove_file(folder.join("image"));
    let _ = std::fs::remove_dir(folder.join("disk"));
    let _ = std::fs::remove_dir(folder);
}

fn works(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
