# frozen_string_literal: true

# Tests generated code and library over every pair of transport and protocol.
#
# Needs CLIENTS_NODE, a node with the types of scripts/test-clients.sh.

require 'minitest/autorun'
require 'socket'
require_relative 'nodes'

NODE = ENV.fetch('CLIENTS_NODE')
HOST, _, PORT = NODE.rpartition(':')

# One connection per pair; the ids ascend over all of them.
class EveryPair < Minitest::Test
  TRANSPORTS = [Thrift::FramedTransport, Thrift::BufferedTransport].freeze
  PROTOCOLS = [
    Thrift::BinaryProtocol,
    Thrift::BinaryProtocolAccelerated,
    Thrift::CompactProtocol
  ].freeze

  def test_every_pair
    last = 0
    TRANSPORTS.product(PROTOCOLS).each do |transport, protocol|
      wrapped = transport.new(Thrift::Socket.new(HOST, Integer(PORT), 10))
      client = IdGen::IdGenService::Client.new(protocol.new(wrapped))
      wrapped.open
      begin
        last = ids(client, last)
        large(client)
        texts(client)
        refusals(client)
      ensure
        wrapped.close
      end
      puts "#{transport} #{protocol}: ok"
    end
  end

  private

  # Ids ascend, by every method. Gives the last one.
  def ids(client, last)
    200.times do
      number = client.nextId('order')
      assert_operator number, :>, last
      last = number
    end
    ranges = client.nextIds('order', 1000)
    assert_equal 1000, ranges.sum(&:count)
    ranges.each do |range|
      assert_operator range.first, :>, last
      last = range.first + range.count - 1
    end
    answer = client.getId('ruby', 'order')
    assert_equal 200, answer.res
    assert_operator answer.value, :>, last
    answer = client.getStrId('ruby', 'order', true)
    assert_equal 200, answer.res
    assert_match(/\AOD[0-9]+\z/, answer.value)
    text = client.nextStringId('order', true)
    assert_operator Integer(text[2..]), :>, Integer(answer.value[2..])
    Integer(text[2..])
  end

  # Numbers above 2^53 and near 2^63 are exact: text and number follow each other.
  def large(client)
    { 'big' => 2**53, 'huge' => 9_223_372_036_853_999_999 }.each do |type, least|
      text = client.nextStringId(type, false)
      number = client.nextId(type)
      assert_operator number, :>, least
      assert_equal Integer(text) + 1, number
      assert_equal number + 1, client.nextIds(type, 2)[0].first
      assert_equal Integer(text), client.decodeId(type, text).id
    end
  end

  # UTF-8 both ways, whatever the encoding of the argument; the argument stays as it is.
  def texts(client)
    text = client.nextStringId('umlaut', true)
    assert_equal Encoding::UTF_8, text.encoding
    assert_match(/\AGröße-№-[0-9]+\z/, text)
    assert_equal 'Größe-№-', client.describeType('umlaut').prefix
    sent = 'grüß dich, 世界 😀'
    said = client.echo('ruby', sent).value
    assert_equal Encoding::UTF_8, said.encoding
    assert_equal sent, said
    latin = 'grüß'.encode(Encoding::ISO_8859_1)
    assert_equal 'grüß', client.echo('ruby', latin).value
    assert_equal Encoding::ISO_8859_1, latin.encoding
  end

  # Failures, typed or in `res`.
  def refusals(client)
    [
      [-> { client.nextId('no-such-type') }, 'UNKNOWN_TYPE', false, nil],
      [-> { client.nextIds('order', 0) }, 'INVALID_ARGUMENT', false, 'count'],
      [-> { client.nextIds('order', -1) }, 'INVALID_ARGUMENT', false, 'count'],
      [-> { client.nextId('down') }, 'UNAVAILABLE', true, nil]
    ].each do |call, *wanted|
      error = assert_raises(IdGen::IdGenException, &call)
      assert_equal wanted, [error.code, error.retriable, error.field]
    end
    answer = client.getId('ruby', 'no-such-type')
    assert_equal [553, -1], [answer.res, answer.value]
    assert_match(/\AUNKNOWN_TYPE: /, answer.ext)
  end
end

# Going on to the next node.
class GoingOn < Minitest::Test
  # A node that takes the connection and says nothing costs one attempt.
  def test_silent_node
    silent = TCPServer.new('127.0.0.1', 0)
    connected = 0
    nodes = Nodes.new(["127.0.0.1:#{silent.addr[1]}", NODE],
                      timeout: 1, on_connect: ->(_) { connected += 1 })
    assert_operator nodes.call { |client| client.nextId('order') }, :>, 0
    assert_equal [2, 2], [nodes.tried, connected]
    # It stays where it was answered.
    assert_operator nodes.call { |client| client.nextId('order') }, :>, 0
    assert_equal [1, 2], [nodes.tried, connected]
    error = assert_raises(IdGen::IdGenException) do
      nodes.call { |client| client.nextId('no-such-type') }
    end
    assert_equal ['UNKNOWN_TYPE', 1], [error.code, nodes.tried]
    nodes.close
    silent.close
  end

  # So does one that resets the connection.
  def test_resetting_node
    server = TCPServer.new('127.0.0.1', 0)
    connected = 0
    on_connect = lambda do |_|
      connected += 1
      next if connected > 1

      accepted = server.accept
      # To close means to reset, so.
      accepted.setsockopt(Socket::Option.linger(true, 0))
      accepted.close
    end
    nodes = Nodes.new(["127.0.0.1:#{server.addr[1]}", NODE], on_connect: on_connect)
    assert_operator nodes.call { |client| client.nextId('order') }, :>, 0
    assert_equal [2, 2], [nodes.tried, connected]
    nodes.close
    server.close
  end
end
