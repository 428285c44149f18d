//! From a URL to a store: one line a scheme.
//!
//! Invariant: no part of a URL is ever shown but its scheme and a file's path, so that no password is.

use std::sync::Arc;

use super::MemoryStore;
use super::erased::ErasedStore;
use crate::error::LockError;

/// The schemes, whether this build has them, and the feature that brings them.
const SCHEMES: [(&str, bool, Option<&str>); 7] = [
    ("memory", true, None),
    ("postgres", cfg!(feature = "postgres"), Some("postgres")),
    ("postgresql", cfg!(feature = "postgres"), Some("postgres")),
    ("redis", cfg!(feature = "redis"), Some("redis")),
    ("rediss", cfg!(feature = "redis-tls"), Some("redis-tls")),
    ("redis+unix", cfg!(feature = "redis"), Some("redis")),
    ("sqlite", cfg!(feature = "sqlite"), Some("sqlite")),
];

/// Opens the store that `url` names.
///
/// * `memory:` is a new store in this process alone.
/// * `postgres:` and `postgresql:` are as in `PostgresStore::connect`.
/// * `redis:`, `rediss:` and `redis+unix:` are as in `RedisStore::connect`; so is `valkey` for `redis` in each.
/// * `sqlite:locks.db`, `sqlite://locks.db` and `sqlite:///var/lib/app/locks.db` are a file, relative or
///   absolute; `%3F` stands for `?`, `%23` for `#`, `%25` for `%`. After a `?`, `allow_network_file_system=true` opens it on a
///   network file system, and `busy_timeout=10` waits ten seconds while others have it locked.
pub(crate) async fn connect(url: &str) -> Result<Arc<dyn ErasedStore>, LockError> {
    let Some((scheme, rest)) = url.split_once(':') else {
        return Err(setup(format!(
            "a store's URL begins with a scheme, as in `memory:`; there are {}",
            schemes()
        )));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "memory" if matches!(rest, "" | "//") => Ok(Arc::new(MemoryStore::new())),
        "memory" => Err(setup("the URL of the memory store is `memory:` and nothing more")),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(Arc::new(super::PostgresStore::connect(url).await?)),
        #[cfg(feature = "redis-tls")]
        "rediss" | "valkeys" => Ok(Arc::new(super::RedisStore::connect(url).await?)),
        #[cfg(feature = "redis")]
        "redis" | "redis+unix" | "valkey" | "valkey+unix" => {
            Ok(Arc::new(super::RedisStore::connect(url).await?))
        }
        #[cfg(feature = "sqlite")]
        "sqlite" => sqlite(rest).await,
        scheme => Err(unknown(scheme)),
    }
}

fn setup(reason: impl Into<String>) -> LockError {
    LockError::Setup { reason: reason.into() }
}

fn unknown(scheme: &str) -> LockError {
    let known = SCHEMES.iter().find(|(name, ..)| *name == scheme);
    setup(match known {
        Some((name, _, Some(feature))) => format!(
            "`{name}:` needs the Cargo feature `{feature}` of lockattr, which this build does not have; add it to the \
             dependency's `features`"
        ),
        // A mistyped URL may have anything before its first colon.
        _ if !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) => {
            format!("the URL's scheme is not one; there are {}", schemes())
        }
        _ => format!("no store has the URL scheme `{scheme}:`; there are {}", schemes()),
    })
}

fn schemes() -> String {
    let names = SCHEMES.iter().map(|(name, is_here, feature)| match feature {
        Some(feature) if *is_here => format!("`{name}:` (feature `{feature}`)"),
        Some(feature) => format!("`{name}:` (feature `{feature}`, not in this build)"),
        None => format!("`{name}:`"),
    });
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(feature = "sqlite")]
async fn sqlite(rest: &str) -> Result<Arc<dyn ErasedStore>, LockError> {
    use std::time::Duration;

    use super::SqliteOptions;

    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if path.contains('#') {
        return Err(setup("a `#` in the path of a `sqlite:` URL is written `%23`"));
    }
    let mut options = SqliteOptions::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        options = match (name, value, value.parse()) {
            ("allow_network_file_system", "true", _) => options.allow_network_file_system(true),
            ("allow_network_file_system", "false", _) => options.allow_network_file_system(false),
            ("busy_timeout", _, Ok(seconds)) => options.busy_timeout(Duration::from_secs(seconds)),
            _ => {
                return Err(setup(
                    "a `sqlite:` URL takes `allow_network_file_system=true` or `=false`, and `busy_timeout=` with a number \
                     of seconds",
                ));
            }
        };
    }
    let path = match path.strip_prefix("//") {
        // Meant for a server, it may have a password, which would be shown as part of the path.
        Some(path) if path.split('/').next().is_some_and(|first| first.contains('@')) => {
            return Err(setup(
                "a `sqlite:` URL names a file, and has no user and no host; a `@` after `//` is written `%40`",
            ));
        }
        Some(path) => path,
        None => path,
    };
    if path.is_empty() {
        return Err(setup(
            "a `sqlite:` URL names a file, as in `sqlite:locks.db` or `sqlite:///var/lib/app/locks.db`",
        ));
    }
    let path =
        decoded(path).ok_or_else(|| setup("the path of the `sqlite:` URL is wrongly percent-encoded"))?;
    Ok(Arc::new(options.open(path).await?))
}

#[cfg(feature = "sqlite")]
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(
            u8::from_str_radix(part.get(..2).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))?, 16)
                .ok()?,
        );
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn refusal(url: &str) -> String {
        match connect(url).await {
            Ok(_) => panic!("`{url}` was accepted"),
            Err(error) => format!("{error} {error:?}"),
        }
    }

    #[tokio::test]
    async fn memory_is_always_there() {
        for url in ["memory:", "memory://", "MEMORY:"] {
            assert_eq!(connect(url).await.map(|store| store.name()).ok(), Some("memory"));
        }
        assert!(refusal("memory:/tmp/x").await.contains("nothing more"));
    }

    #[tokio::test]
    async fn an_unknown_scheme_lists_the_known_ones_and_hides_the_rest() {
        let text = refusal("consul://user:hunter2@host:8500/0").await;
        assert!(
            text.contains("`consul:`")
                && text.contains("`redis:` (feature `redis`")
                && text.contains("`memory:`")
                && text.contains("`sqlite:` (feature `sqlite`")
        );
        assert!(!text.contains("hunter2") && !text.contains("host"), "{text}");
        assert!(!refusal("//user:hunter2@host").await.contains("user"));
        assert!(refusal("locks.db").await.contains("begins with a scheme"));
        assert!(refusal("").await.contains("begins with a scheme"));
    }

    #[cfg(not(feature = "sqlite"))]
    #[tokio::test]
    async fn a_scheme_that_is_not_built_in_names_its_feature() {
        let text = refusal("sqlite:locks.db").await;
        assert!(text.contains("needs the Cargo feature `sqlite`"), "{text}");
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn wrong_sqlite_urls_are_explained() {
        for (url, word) in [
            ("sqlite:", "names a file"),
            ("sqlite://", "names a file"),
            ("sqlite::memory:", "`memory:`"),
            ("sqlite:/nowhere/at/all/x.db", "/nowhere/at/all is not a directory"),
            ("sqlite:x.db?mode=rwc", "busy_timeout="),
            ("sqlite:x.db?busy_timeout=soon", "busy_timeout="),
            ("sqlite:x%2.db", "percent-encoded"),
            ("sqlite:x#.db", "%23"),
        ] {
            let text = refusal(url).await;
            assert!(text.contains(word), "{url}: {text}");
        }
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn a_password_in_a_sqlite_url_is_not_shown() {
        for url in ["sqlite://user:hunter2@host/locks.db", "sqlite://hunter2@host"] {
            let text = refusal(url).await;
            assert!(text.contains("no user and no host") && !text.contains("hunter2"), "{text}");
        }
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn paths_are_decoded() {
        assert_eq!(decoded("a%3Fb%23c%25%C3%A9").as_deref(), Some("a?b#c%é"));
        assert_eq!(decoded("a%+1"), None);
        assert_eq!(decoded("%FF"), None);
    }
}
