//! What kind of place a path is: one that may be written, on a file system of this machine.

use std::path::Path;

/// Whether this user may write there, as far as can be told without trying.
#[cfg(unix)]
pub(super) fn is_writable(path: &Path) -> bool {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    use rustix::io::Errno;
    let answer = accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS);
    !matches!(answer, Err(Errno::ACCESS | Errno::PERM | Errno::ROFS))
}

#[cfg(not(unix))]
pub(super) fn is_writable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_dir() || !metadata.permissions().readonly())
}

/// The name of the network file system that `path` lies on, if it does.
#[cfg(target_os = "linux")]
pub(super) fn network(path: &Path) -> Option<&'static str> {
    let statistics = rustix::fs::statfs(path).ok()?;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the field's width and sign differ between architectures; the numbers have 32 bits"
    )]
    network_kind(statistics.f_type as u32)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn network(_: &Path) -> Option<&'static str> {
    None
}

/// Names the file systems of statfs(2) and linux/magic.h that machines share.
#[cfg(target_os = "linux")]
const fn network_kind(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517B | 0xFE53_4D42 => "SMB",
        0xFF53_4D42 => "CIFS",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x5346_414F | 0x6B41_4653 => "AFS",
        0x7375_7245 => "Coda",
        0x00C3_6400 => "Ceph",
        0x564C => "NCP",
        0x0116_1970 => "GFS2",
        0x7461_636F => "OCFS2",
        0x0BD0_0BD0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x1983_0326 => "BeeGFS",
        0x2003_0528 => "OrangeFS",
        0xAAD7_AAEA => "PanFS",
        0x786F_4256 => "VirtualBox shared folder",
        0xBACB_ACBC => "VMware shared folder",
        0x7C7C_6673 => "Parallels shared folder",
        _ => return None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_from_local_ones() {
        for (magic, name) in
            [(0x6969, "NFS"), (0x0102_1997, "9p"), (0x6573_5546, "FUSE"), (0xFF53_4D42, "CIFS")]
        {
            assert_eq!(network_kind(magic), Some(name));
        }
        for local in [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630] {
            assert_eq!(network_kind(local), None);
        }
    }

    #[test]
    fn the_directory_of_this_test_is_local() {
        assert_eq!(network(Path::new("/proc")), None);
    }
}
