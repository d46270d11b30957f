# frozen_string_literal: true

# A client of IdGen: example.rb HOST:PORT[,HOST:PORT…] [TYPE]

require_relative 'nodes'

type = ARGV[1] || 'order'
nodes = Nodes.new(ARGV[0].split(','))
begin
  puts "id: #{nodes.call { |client| client.nextId(type) }}"

  ranges = nodes.call { |client| client.nextIds(type, 100) }
  ids = ranges.flat_map { |range| (range.first...range.first + range.count).to_a }
  puts "ids: #{ids.first} to #{ids.last}"

  puts "text: #{nodes.call { |client| client.nextStringId(type, true) }}"
rescue IdGen::IdGenException => e
  abort "failed after #{nodes.tried} attempts: #{e.code}: #{e.message}"
end

begin
  nodes.call { |client| client.nextId('no-such-type') }
rescue IdGen::IdGenException => e
  puts "refused: #{e.code}"
end
nodes.close
