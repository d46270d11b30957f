//! A client over Thrift: framed transport, binary protocol.

use idgen::front::thrift::generated::IdGenServiceSyncClient;
use thrift::protocol::{TBinaryInputProtocol, TBinaryOutputProtocol};
use thrift::transport::{
    ReadHalf, TFramedReadTransport, TFramedWriteTransport, TIoChannel, TTcpChannel, WriteHalf,
};

/// One connection to a node.
pub type Client = IdGenServiceSyncClient<
    TBinaryInputProtocol<TFramedReadTransport<ReadHalf<TTcpChannel>>>,
    TBinaryOutputProtocol<TFramedWriteTransport<WriteHalf<TTcpChannel>>>,
>;

/// Connects to `address`.
pub fn client(address: &str) -> thrift::Result<Client> {
    let mut channel = TTcpChannel::new();
    channel.open(address)?;
    let (read, write) = channel.split()?;
    Ok(IdGenServiceSyncClient::new(
        TBinaryInputProtocol::new(TFramedReadTransport::new(read), true),
        TBinaryOutputProtocol::new(TFramedWriteTransport::new(write), true),
    ))
}
