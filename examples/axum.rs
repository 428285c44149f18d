//! A web handler under a lock: 409 while another request has the account, 423 when the lock was lost, 503
//! when the store fails.
#![expect(clippy::print_stdout, reason = "it talks to a person")]

use std::error::Error;
use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use lockattr::{LockError, Locker, distributed_lock, store::MemoryStore};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

struct Failure(LockError);

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match &self.0 {
            error if error.is_busy() => StatusCode::CONFLICT,
            error if error.is_lost() => StatusCode::LOCKED,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        // Its text shows the template of the key, never the values in it.
        (status, self.0.to_string()).into_response()
    }
}

/// The attribute goes on the handler itself.
#[distributed_lock(key = "account:{id}", expires = 1)]
async fn withdraw(Path(id): Path<u32>) -> Result<String, Failure> {
    tokio::time::sleep(Duration::from_secs(3)).await;
    Ok(format!("withdrawn from {id}\n"))
}

/// Sends one request and returns the first line of the answer.
async fn post(address: SocketAddr, path: &str) -> Result<String, Box<dyn Error>> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let locker = Locker::new(MemoryStore::new());
    lockattr::install(locker.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = Router::new().route("/accounts/{id}/withdraw", routing::post(withdraw));
    tokio::spawn(async { axum::serve(listener, app).await });

    // Three at once for one account, one for another, and an operator who takes the second one's lock away.
    let path = "/accounts/7/withdraw";
    let (one, two, three, other, ()) = tokio::join!(
        post(address, path),
        post(address, path),
        post(address, path),
        post(address, "/accounts/8/withdraw"),
        async {
            while let Ok(None) = locker.inspect("account:8").await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            if let Ok(Some(record)) = locker.inspect("account:8").await {
                let forced = locker.force_release("account:8", record.token).await;
                println!("the lock of account 8 was taken away: {forced:?}");
            }
        },
    );
    let mut same = [one?, two?, three?];
    same.sort();
    println!("account 7: {}", same.join(", "));
    println!("account 8: {}", other?);
    Ok(())
}
