//! Connections and honest calls: what comes in goes out, in both directions at once.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{Request, Response, Uri};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::grpc::{Over, given_up, receive, send};
use super::{Book, HASH_KV, Place, WATCH, hash, silence, snapshot};

/// One call as the lies see it.
pub struct Call {
    /// The member's answer, its head not yet there.
    pub answer: ResponseFuture,
    pub client: SendResponse<Bytes>,
    /// Closes the connection to the client without a word.
    pub hang_up: Arc<Notify>,
}

/// A connection of either kind.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin + 'static> Wire for T {}

/// A listener of either kind.
pub trait Listener: Send + 'static {
    fn accept(&mut self) -> impl Future<Output = io::Result<impl Wire>> + Send;
}

impl Listener for TcpListener {
    async fn accept(&mut self) -> io::Result<impl Wire> {
        TcpListener::accept(self).await.map(|(socket, _)| socket)
    }
}

impl Listener for UnixListener {
    async fn accept(&mut self) -> io::Result<impl Wire> {
        UnixListener::accept(self).await.map(|(socket, _)| socket)
    }
}

pub async fn serve(mut listener: impl Listener, book: Arc<Book>) {
    // Dropping the set with this task ends all connections.
    let mut connections = JoinSet::new();
    while let Ok(socket) = listener.accept().await {
        connections.spawn(connection(socket, Arc::clone(&book)));
        while connections.try_join_next().is_some() {}
    }
}

/// Serves one client by one connection to the member.
async fn connection(socket: impl Wire, book: Arc<Book>) -> Result<(), Over> {
    match book.member().ok_or(Over)? {
        Place::Tcp(address) => {
            let upstream = TcpStream::connect(address).await.map_err(|_| Over)?;
            between(socket, upstream, address.to_string(), book).await
        }
        Place::Unix(path) => {
            let upstream = UnixStream::connect(path).await.map_err(|_| Over)?;
            between(socket, upstream, "localhost".into(), book).await
        }
    }
}

async fn between(socket: impl Wire, upstream: impl Wire, member: String, book: Arc<Book>) -> Result<(), Over> {
    let (upstream, driver) = h2::client::handshake(upstream).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { driver.await.map_err(Over::from) });

    let hang_up = Arc::new(Notify::new());
    let mut client = h2::server::handshake(socket).await?;
    loop {
        let next = tokio::select! {
            next = client.accept() => next,
            () = hang_up.notified() => return Ok(()),
        };
        let Some(next) = next else { return Ok(()) };
        let (request, respond) = next?;
        tasks.spawn(call(request, respond, upstream.clone(), member.clone(), Arc::clone(&book), Arc::clone(&hang_up)));
    }
}

async fn call(
    request: Request<RecvStream>,
    client: SendResponse<Bytes>,
    upstream: SendRequest<Bytes>,
    member: String,
    book: Arc<Book>,
    hang_up: Arc<Notify>,
) -> Result<(), Over> {
    let (mut head, question) = request.into_parts();
    let path = head.uri.path().to_owned();
    let lie = book.note(&path);
    let uri = Uri::builder().scheme("http").authority(member).path_and_query(path.as_str());
    head.uri = uri.build().map_err(|_| Over)?;
    let mut upstream = upstream.ready().await?;
    let (answer, to_member) = upstream.send_request(Request::from_parts(head, ()), question.is_end_stream())?;
    let call = Call { answer, client, hang_up };

    let answer = async {
        match lie {
            _ if path == WATCH => silence::pass(call, &book).await,
            None => pass(call).await,
            Some(lie) if path == HASH_KV => hash::answer(call, lie).await,
            Some(lie) => snapshot::answer(call, lie).await,
        }
    };
    let mut question = std::pin::pin!(ask(question, to_member));
    let mut answer = std::pin::pin!(answer);
    // The call lasts as long as its answer; a question that breaks off ends it.
    tokio::select! {
        done = &mut answer => done,
        asked = &mut question => {
            asked?;
            answer.await
        }
    }
}

async fn ask(mut from: RecvStream, mut to: SendStream<Bytes>) -> Result<(), Over> {
    if from.is_end_stream() {
        return Ok(());
    }
    // A member that has read enough answers, and resets what is still on its way to it: its answer counts.
    while let Some(piece) = receive(&mut from).await? {
        if send(&mut to, piece).await.is_err() {
            return Ok(());
        }
    }
    let _ = to.send_data(Bytes::new(), true);
    Ok(())
}

/// The honest answer.
async fn pass(mut call: Call) -> Result<(), Over> {
    let head = tokio::select! {
        head = &mut call.answer => head?,
        _ = std::future::poll_fn(|cx| call.client.poll_reset(cx)) => return Err(Over),
    };
    let (head, mut body) = head.into_parts();
    let ends = body.is_end_stream();
    let mut to = call.client.send_response(Response::from_parts(head, ()), ends)?;
    if ends {
        return Ok(());
    }
    loop {
        let piece = tokio::select! {
            piece = receive(&mut body) => piece?,
            () = given_up(&mut to) => return Err(Over),
        };
        let Some(piece) = piece else { break };
        send(&mut to, piece).await?;
    }
    match body.trailers().await? {
        Some(trailers) => to.send_trailers(trailers)?,
        None => to.send_data(Bytes::new(), true)?,
    }
    Ok(())
}
