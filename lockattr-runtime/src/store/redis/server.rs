//! What the server says of itself (`INFO`): whether it can be used, and what it guarantees.

use std::collections::HashMap;

use crate::store::traits::{Audit, Finding, Level};

/// The fields of `INFO`.
#[derive(Debug)]
pub(super) struct Server(HashMap<String, String>);

impl Server {
    pub(super) fn read(info: &str) -> Self {
        let fields = info.lines().filter_map(|line| line.split_once(':'));
        Self(fields.map(|(name, value)| (name.to_owned(), value.trim_end().to_owned())).collect())
    }

    fn field(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    fn is_on(&self, name: &str) -> bool {
        !matches!(self.field(name), "" | "0")
    }

    pub(super) fn is_cluster(&self) -> bool {
        self.is_on("cluster_enabled")
    }

    fn evicts_held(&self) -> bool {
        self.is_on("maxmemory") && self.field("maxmemory_policy").starts_with("allkeys-")
    }

    /// Why the server must not be used, if so.
    pub(super) fn refusal(&self, allow_eviction: bool) -> Option<String> {
        if self.field("redis_mode") == "sentinel" {
            return Some(
                "it is a Sentinel, which keeps no data; give the address of the primary that it watches"
                    .to_owned(),
            );
        }
        if self.field("role") == "slave" {
            return Some(format!(
                "it is a read-only replica of {}:{}; give the address of the primary",
                self.field("master_host"),
                self.field("master_port")
            ));
        }
        if self.evicts_held() && !allow_eviction {
            return Some(format!(
                "its `maxmemory-policy` is `{}` and it has a limit, so that it may throw away locks that are held; set \
                 the policy to `noeviction` or `volatile-lru`, use another server, or set `allow_eviction`",
                self.field("maxmemory_policy")
            ));
        }
        None
    }

    pub(super) fn audit(&self) -> Audit {
        let mut findings = Vec::new();
        let mut note = |level, text: String| findings.push(Finding::new(level, text));
        if self.evicts_held() {
            note(
                Level::None,
                format!(
                    "`maxmemory-policy` is `{}`: when memory is full the server may throw away locks that are held",
                    self.field("maxmemory_policy")
                ),
            );
        }
        if !self.is_on("aof_enabled") {
            note(
                Level::None,
                "the append-only file is off: a restart of the server forgets locks that are held, all else holds while \
                 it stays up; set `appendonly yes`"
                    .to_owned(),
            );
        } else if self.field("aof_last_write_status") == "err" {
            note(
                Level::None,
                "writing the append-only file fails: a restart forgets locks that are held".to_owned(),
            );
        } else {
            note(
                Level::P2,
                "with `appendfsync everysec`, the default, a crash of the server or a power failure may take back what \
                 it answered in the last seconds; set `appendfsync always`"
                    .to_owned(),
            );
        }
        if self.is_cluster() {
            note(
                Level::None,
                "it is a node of a Redis Cluster: a fail-over may forget locks that are held, keys of other nodes are \
                 refused, and several keys are taken one by one"
                    .to_owned(),
            );
        } else if self.is_on("connected_slaves") {
            note(
                Level::None,
                format!(
                    "it has {} replicas, which learn of a lock after it was granted: a fail-over to one may forget locks \
                     that are held; set `lock_delay` and check fencing tokens, or use a server without fail-over",
                    self.field("connected_slaves")
                ),
            );
        }
        note(
            Level::P2,
            "leases end by the server's wall clock: setting it forward ends them early".to_owned(),
        );
        let level = findings.iter().map(|finding| finding.level).min().unwrap_or(Level::P2);
        Audit::new(level, findings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURABLE: &str = "# Server\r\nredis_mode:standalone\r\nrole:master\r\nmaxmemory:0\r\n\
         maxmemory_policy:noeviction\r\naof_enabled:1\r\naof_last_write_status:ok\r\nconnected_slaves:0\r\n\
         cluster_enabled:0\r\n";

    fn changed(changes: &[(&str, &str)]) -> Server {
        let mut server = Server::read(DURABLE);
        server.0.extend(changes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        server
    }

    #[test]
    fn a_single_durable_server_reaches_all() {
        let server = changed(&[]);
        assert_eq!(server.refusal(false), None);
        assert_eq!(server.audit().level, Level::P2);
    }

    #[test]
    fn what_may_forget_reaches_nothing_and_is_named() {
        for (changes, word) in [
            (&[("aof_enabled", "0")][..], "append-only"),
            (&[("aof_last_write_status", "err")], "append-only"),
            (&[("connected_slaves", "2")], "2 replicas"),
            (&[("cluster_enabled", "1")], "Cluster"),
            (&[("maxmemory", "1048576"), ("maxmemory_policy", "allkeys-lfu")], "allkeys-lfu"),
        ] {
            let audit = changed(changes).audit();
            assert_eq!(audit.level, Level::None, "{word}");
            assert!(
                audit.findings.iter().any(|f| f.level == Level::None && f.text.contains(word)),
                "{audit:?}"
            );
        }
    }

    #[test]
    fn only_eviction_of_what_is_held_is_refused() {
        let policy = |policy, limit| changed(&[("maxmemory", limit), ("maxmemory_policy", policy)]);
        assert!(policy("allkeys-lru", "1").refusal(false).is_some());
        assert_eq!(policy("allkeys-lru", "1").refusal(true), None);
        assert_eq!(policy("allkeys-lru", "0").refusal(false), None);
        assert_eq!(policy("volatile-lru", "1").refusal(false), None);
        assert!(changed(&[("redis_mode", "sentinel")]).refusal(true).is_some());
        assert!(changed(&[("role", "slave")]).refusal(true).is_some());
    }
}
