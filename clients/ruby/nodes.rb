# frozen_string_literal: true

require 'thrift'
require 'id_gen_service'

# One connection, to the first of the nodes that works; goes on to the next node where
# one does not answer.
#
# Copy this file into your project, beside the code that the Thrift compiler makes. For
# one thread at a time, as every Thrift client: give each thread its own.
class Nodes
  # How many attempts the last call took.
  attr_reader :tried

  # nodes: texts as "10.0.0.1:5900". timeout: how long connecting, and each wait for the
  # node, may take, in seconds. on_connect: is called with the client after each
  # connecting; authenticate there, if your cluster wants a token.
  def initialize(nodes, timeout: 2.0, attempts: 4, on_connect: nil)
    raise ArgumentError, 'no nodes' if nodes.empty?

    @nodes = nodes
    @timeout = timeout
    @attempts = attempts
    @on_connect = on_connect
    @at = 0
    @tried = 0
  end

  # What the block returns, which is called with a connected client.
  #
  # Tries again, on the next node, where a retry may help: after an IdGenException that
  # says so, and where the node cannot be reached or does not answer. A repeated call
  # may use up more ids; it never brings one twice.
  def call
    (1..).each do |attempt|
      @tried = attempt
      begin
        return yield connected
      rescue IdGen::IdGenException => e
        raise if !e.retriable || attempt >= @attempts

        go_on
      rescue Thrift::TransportException, Thrift::ProtocolException,
             IOError, SystemCallError, SocketError
        go_on
        raise if attempt >= @attempts
      rescue Exception # rubocop:disable Lint/RescueException
        # Perhaps half of a reply was read: nothing may read on behind it.
        close
        raise
      end
      # Every node had its turn. At random, so that clients do not come in step.
      sleep(rand(0.05..0.15)) if (attempt % @nodes.size).zero?
    end
  end

  # Closes the connection. The next call makes a new one.
  def close
    @transport&.close
    @transport = @client = nil
  end

  private

  def go_on
    close
    @at = (@at + 1) % @nodes.size
  end

  def connected
    return @client if @client

    # What is left of a connection that on_connect failed with.
    close
    host, _, port = @nodes[@at].rpartition(':')
    @transport = Thrift::FramedTransport.new(Thrift::Socket.new(host, Integer(port), @timeout))
    @transport.open
    client = IdGen::IdGenService::Client.new(Thrift::CompactProtocol.new(@transport))
    @on_connect&.call(client)
    @client = client
  end
end
