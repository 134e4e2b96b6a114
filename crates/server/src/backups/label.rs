//! What is known of a backup, in a file beside the files of its store.

use redrive_ojs::time::{parse_rfc3339, rfc3339};
use redrive_policy::Moment;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The name of the file.
pub(super) const LABEL: &str = "backup.json";
/// The version of what is written there.
const FORMAT: u64 = 1;

/// What is known of a backup besides its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupLabel {
    /// When it was begun, by the wall clock. The backup has everything that was acknowledged by then.
    pub taken_at: Moment,
    /// The folder of the store that was copied.
    pub store: PathBuf,
    /// Its number, if the server made it by its schedule. Numbers go up, whatever the clock does.
    pub scheduled: Option<u64>,
}

impl BackupLabel {
    /// Reads the label of a backup; `None` if the folder has none.
    ///
    /// # Errors
    /// That it cannot be read, or is not what a label is.
    pub fn read(backup: &Path) -> io::Result<Option<Self>> {
        let path = backup.join(LABEL);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let wrong = || io::Error::new(ErrorKind::InvalidData, "it is not the label of a backup of this version");
        let value: Value = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
        let label = || {
            let taken_at = parse_rfc3339(value["taken_at"].as_str()?)?;
            let scheduled = (!value["scheduled"].is_null()).then(|| value["scheduled"].as_u64());
            let scheduled = match scheduled {
                Some(number) => Some(number?),
                None => None,
            };
            (value["format"] == FORMAT).then_some(Self { taken_at, store: value["store"].as_str()?.into(), scheduled })
        };
        label().map(Some).ok_or_else(wrong)
    }

    /// Writes it into the folder of a backup, and flushes it.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn write(&self, backup: &Path) -> io::Result<()> {
        let label = json!({
            "format": FORMAT,
            "taken_at": rfc3339(self.taken_at),
            "store": self.store.to_string_lossy(),
            "scheduled": self.scheduled,
        });
        let mut options = File::options();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.write(true).create_new(true).open(backup.join(LABEL))?;
        file.write_all(format!("{label}\n").as_bytes())?;
        file.sync_all()?;
        super::folder::sync_dir(backup)
    }
}
