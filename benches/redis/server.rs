//! A `redis-server` of the bench's own, on loopback.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::{Client, IntoConnectionInfo as _, ProtocolVersion};

/// A server that ends with this.
pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
}

impl Server {
    pub(crate) fn start() -> Self {
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()])
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let url = format!("redis://127.0.0.1:{port}");
        let client = Client::open(&*url).expect("the URL is right");
        while client.get_connection().is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Self { process, url }
    }

    /// With the protocol and the socket options of ours.
    pub(crate) fn client(&self) -> Client {
        let info = (&*self.url).into_connection_info().expect("the URL is right");
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        Client::open(info.set_tcp_settings(tcp).set_redis_settings(settings)).expect("the URL is right")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
