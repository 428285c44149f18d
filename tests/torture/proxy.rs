//! A TCP proxy between clients and a server, that does to connections what networks do.
//!
//! Invariant: bytes that it lets pass are not changed; what is lost is lost to the end of its connection, as TCP
//! would have it.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::Failure;

/// What happens to the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Fine,
    /// Answers are thrown away; what was asked is done. The connection is reset when it clears up.
    LoseAnswers,
    DelayRequests(Duration),
    DelayAnswers(Duration),
    /// Nothing gets through, in either direction; nobody is told, then or later.
    Swallow,
    /// The next request is forwarded, and the connection is then reset before its answer.
    ResetAfterRequest,
    /// The next request is not forwarded, and the connection is reset.
    ResetBeforeRequest,
    /// The connection is reset, and the next request arrives so much later.
    DeliverLate(Duration),
    /// The server's side is closed, and the client's stays open.
    CloseServerSide,
}

pub(crate) struct Proxy {
    runtime: Option<Runtime>,
    weather: watch::Sender<Weather>,
    pub(crate) address: SocketAddr,
}

impl Proxy {
    /// Starts a proxy before the server at `upstream`.
    pub(crate) fn start(upstream: SocketAddr) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let (weather, seen) = watch::channel(Weather::Fine);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let seen = seen.clone();
                tokio::spawn(async move {
                    // Without a server there is none for the client either.
                    if let Ok(server) = TcpStream::connect(upstream).await {
                        carry(client, server, seen).await;
                    }
                });
            }
        });
        Ok(Self { runtime: Some(runtime), weather, address })
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Reset,
}

async fn carry(client: TcpStream, server: TcpStream, weather: watch::Receiver<Weather>) {
    // Gathering bytes would add delays that nobody asked for.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, to_server) = server.into_split();
    let mut answered = weather.clone();
    let end = tokio::select! {
        end = requests(&mut from_client, to_server, weather) => end,
        end = answers(&mut from_server, &mut to_client, &mut answered) => end,
    };
    if end == End::Reset {
        // With nothing to linger for, closing is a reset.
        let whole: &TcpStream = from_client.as_ref();
        let _ = whole.set_zero_linger();
    }
}

async fn requests(
    client: &mut OwnedReadHalf,
    server: OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
) -> End {
    let (mut buffer, mut server) = (vec![0; 64 * 1024], Some(server));
    loop {
        let count = tokio::select! {
            read = client.read(&mut buffer) => match read {
                Ok(count @ 1..) => count,
                _ => return End::Closed,
            },
            () = closes_server_side(&mut weather), if server.is_some() => {
                server = None;
                continue;
            }
        };
        let now = *weather.borrow_and_update();
        let pass = match now {
            Weather::Swallow => {
                server = None;
                false
            }
            Weather::ResetBeforeRequest => return End::Reset,
            Weather::DeliverLate(delay) => {
                if let Some(mut server) = server {
                    buffer.truncate(count);
                    tokio::spawn(async move {
                        tokio::time::sleep(delay).await;
                        // The server may have closed it meanwhile.
                        let _ = server.write_all(&buffer).await;
                    });
                }
                return End::Reset;
            }
            Weather::DelayRequests(delay) => {
                tokio::time::sleep(delay).await;
                true
            }
            _ => true,
        };
        // Once a byte is missing, no later one may pass.
        if let Some(server) = server.as_mut().filter(|_| pass)
            && server.write_all(&buffer[..count]).await.is_err()
        {
            return End::Closed;
        }
        if now == Weather::ResetAfterRequest {
            return End::Reset;
        }
    }
}

/// Ready when the server's side of connections is to be closed.
async fn closes_server_side(weather: &mut watch::Receiver<Weather>) {
    if weather.wait_for(|weather| *weather == Weather::CloseServerSide).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn answers(
    server: &mut OwnedReadHalf,
    client: &mut OwnedWriteHalf,
    weather: &mut watch::Receiver<Weather>,
) -> End {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match server.read(&mut buffer).await {
            Ok(count @ 1..) => count,
            // Of a server that was told so by a closed or a swallowed side, the client hears nothing.
            _ if matches!(*weather.borrow(), Weather::CloseServerSide | Weather::Swallow) => {
                std::future::pending().await
            }
            _ => return End::Closed,
        };
        let now = *weather.borrow_and_update();
        match now {
            Weather::Swallow | Weather::CloseServerSide => std::future::pending().await,
            Weather::LoseAnswers => {
                let _ = weather.wait_for(|weather| *weather != Weather::LoseAnswers).await;
                return End::Reset;
            }
            Weather::DelayAnswers(delay) => tokio::time::sleep(delay).await,
            _ => {}
        }
        if client.write_all(&buffer[..count]).await.is_err() {
            return End::Closed;
        }
    }
}
