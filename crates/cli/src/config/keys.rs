//! Keys, which are in files or in the environment.

use super::build::Reader;
use redrive_server::{ApiKeys, SecretKeys};

impl Reader<'_> {
    /// Those that admit callers.
    pub(super) fn keys(&mut self) -> ApiKeys {
        let (own, path) = (self.text("api_key"), self.text("api_key_file"));
        let (key, text) = match (own.is_empty(), path.is_empty()) {
            (true, true) => return ApiKeys::default(),
            (false, true) => ("api_key", Ok(own)),
            (true, false) => ("api_key_file", std::fs::read_to_string(&path)),
            (false, false) => {
                self.wrong("api_key_file", "found together with api_key; keep one of them");
                return ApiKeys::default();
            }
        };
        let text = text.map_err(|error| {
            self.problems.is_usage = true;
            format!("cannot read \"{path}\": {error}")
        });
        let keys = text.and_then(|text| ApiKeys::read(&text)).and_then(|keys| {
            if keys.is_empty() { Err("found no key; one on each line is needed".to_owned()) } else { Ok(keys) }
        });
        keys.unwrap_or_else(|message| {
            self.wrong(key, &message);
            ApiKeys::default()
        })
    }

    /// Those that encrypt what callers store.
    pub(super) fn secret_keys(&mut self) -> SecretKeys {
        let path = self.text("secrets_key_file");
        if path.is_empty() {
            return SecretKeys::default();
        }
        let text = std::fs::read_to_string(&path).map_err(|error| {
            self.problems.is_usage = true;
            format!("cannot read \"{path}\": {error}")
        });
        text.and_then(|text| SecretKeys::read(&text)).unwrap_or_else(|message| {
            self.wrong("secrets_key_file", &message);
            SecretKeys::default()
        })
    }
}
