# Tests generated code and library over every pair of transport and protocol; of the
# latter the library has only the binary one.
#
# Needs CLIENTS_NODE, a node with the types of scripts/test-clients.sh.

use v5.10;
use strict;
use warnings;
use utf8;

use Encode qw(decode_utf8 encode_utf8);
use IO::Socket::INET;
use Math::BigInt;
use Nodes;
use Scalar::Util qw(blessed);
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Thrift::BufferedTransport;

my $node = $ENV{CLIENTS_NODE} or die "CLIENTS_NODE is not set\n";
my ($host, $port) = split /:/, $node;

# Whether $call dies with an IdGenException with these fields.
sub refused {
    my ($call, $code, $retriable, $field) = @_;
    my $answer = eval { $call->() };
    my $error  = $@;
    return fail("$code: died with no IdGenException, but '$error'")
        unless blessed($error) && $error->isa('IdGen::IdGenException');
    return is_deeply(
        [$error->code, $error->retriable ? 1 : 0, $error->field],
        [$code,        $retriable,                $field],
        "$code is told"
    );
}

# Ids ascend, by every method. Gives the last one.
sub ids {
    my ($client, $last) = @_;
    my $ascend = 1;
    my $number;
    for (1 .. 200) {
        $number = $client->nextId('order');
        $ascend &&= $number > $last;
        $last = $number;
    }
    my $count = 0;
    for my $part (@{ $client->nextIds('order', 1000) }) {
        $ascend &&= $part->first > $last;
        $count += $part->count;
        $last = $part->first + $part->count - 1;
    }
    ok($ascend, 'ids ascend');
    is($count, 1000, 'as many as asked for');
    my $answer = $client->getId('perl', 'order');
    is($answer->res, 200, 'getId');
    cmp_ok($answer->value, '>', $last, 'and a higher id');
    $answer = $client->getStrId('perl', 'order', 1);
    is($answer->res, 200, 'getStrId');
    like($answer->value, qr/^OD[0-9]+\z/, 'and its prefix');
    my $text = $client->nextStringId('order', 1);
    cmp_ok(substr($text, 2), '>', substr($answer->value, 2), 'nextStringId');
    like($client->nextStringId('order', 0), qr/^[0-9]+\z/, 'false is false');
    return substr($text, 2) + 1;
}

# Numbers above 2^53 and near 2^63 are exact: text and number follow each other.
# They are compared as texts: `is` does so, and == is exact only while both are integers.
sub large {
    my ($client) = @_;
    my %least = (big => '9007199254740993', huge => '9223372036854000000');
    for my $type (sort keys %least) {
        my $text   = $client->nextStringId($type, 0);
        my $number = $client->nextId($type);
        cmp_ok(Math::BigInt->new($text), '>=', Math::BigInt->new($least{$type}), "$type: large");
        is($number, Math::BigInt->new($text)->badd(1)->bstr, "$type: exact");
        # Without Math::BigInt: Perl adds integers of 64 bits exactly.
        is($number, $text + 1, "$type: and so added");
        is($client->nextIds($type, 2)->[0]->first, $number + 1, "$type: in a range");
        is($client->decodeId($type, $text)->id, $text, "$type: decoded");
    }
    return;
}

# UTF-8 both ways: what comes is bytes. What goes may be characters, if Perl marks them as
# such, and bytes; to be on the safe side, bytes.
sub texts {
    my ($client) = @_;
    my $text = $client->nextStringId('umlaut', 1);
    ok(!utf8::is_utf8($text), 'bytes come');
    like(decode_utf8($text), qr/^Größe-№-[0-9]+\z/, 'that are UTF-8');
    is(decode_utf8($client->describeType('umlaut')->prefix), 'Größe-№-', 'in a struct, too');
    my $sent = 'grüß dich, 世界 😀';
    is(decode_utf8($client->echo('perl', $sent)->value), $sent, 'characters go');
    is($client->echo('perl', encode_utf8($sent))->value, encode_utf8($sent), 'and bytes');
    # Characters, but not marked: the library sends them as they are, which is not UTF-8.
    my $latin = "gr\xfc\xdf";
    ok(!utf8::is_utf8($latin), 'not marked');
    is($client->echo('perl', $latin)->res, 552, 'and refused');
    is(decode_utf8($client->echo('perl', encode_utf8($latin))->value), $latin, 'but not as bytes');
    return;
}

# Failures, typed or in `res`.
sub refusals {
    my ($client) = @_;
    refused(sub { $client->nextId('no-such-type') }, 'UNKNOWN_TYPE', 0, undef);
    refused(sub { $client->nextIds('order', 0) }, 'INVALID_ARGUMENT', 0, 'count');
    refused(sub { $client->nextIds('order', -1) }, 'INVALID_ARGUMENT', 0, 'count');
    refused(sub { $client->nextId('down') }, 'UNAVAILABLE', 1, undef);
    my $answer = $client->getId('perl', 'no-such-type');
    is_deeply([$answer->res, $answer->value], [553, -1], 'a failure of the original methods');
    like($answer->ext, qr/^UNKNOWN_TYPE: /, 'and what it is');
    return;
}

my $last = 0;
for my $transport (qw(Thrift::FramedTransport Thrift::BufferedTransport)) {
    subtest "$transport Thrift::BinaryProtocol" => sub {
        my $socket = Thrift::Socket->new({
            host        => $host,
            port        => $port,
            sendTimeout => 10_000,
            recvTimeout => 10_000,
        });
        my $wrapped = $transport->new($socket);
        my $client  = IdGen::IdGenServiceClient->new(Thrift::BinaryProtocol->new($wrapped));
        $wrapped->open;
        $last = ids($client, $last);
        large($client);
        texts($client);
        refusals($client);
        $wrapped->close;
    };
}

subtest 'a node that takes the connection and says nothing costs one attempt' => sub {
    my $silent    = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die $!;
    my $connected = 0;
    my $nodes     = Nodes->new(
        ['127.0.0.1:' . $silent->sockport, $node],
        timeout    => 1,
        on_connect => sub { $connected++ },
    );
    cmp_ok($nodes->call(sub { $_[0]->nextId('order') }), '>', 0, 'an id');
    is_deeply([$nodes->tried, $connected], [2, 2], 'from the second node');
    cmp_ok($nodes->call(sub { $_[0]->nextId('order') }), '>', 0, 'the next');
    is_deeply([$nodes->tried, $connected], [1, 2], 'by the same connection');
    refused(sub { $nodes->call(sub { $_[0]->nextId('no-such-type') }) }, 'UNKNOWN_TYPE', 0, undef);
    is($nodes->tried, 1, 'and is not asked again');
    $nodes->close;
};

# What a call does whose first connection, to a listener of its own, is broken by $break.
sub broken {
    my ($break) = @_;
    my $listener  = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die $!;
    my $connected = 0;
    my $nodes;
    $nodes = Nodes->new(
        ['127.0.0.1:' . $listener->sockport, $node],
        on_connect => sub {
            $break->($listener, ($nodes->{socket}{handle}->handles)[0]) if $connected++ == 0;
        },
    );
    cmp_ok($nodes->call(sub { $_[0]->nextId('order') }), '>', 0, 'an id');
    is_deeply([$nodes->tried, $connected], [2, 2], 'from the second node');
    $nodes->close;
    return;
}

subtest 'a write to nobody raises a signal that does not end the program' => sub {
    broken(sub { shutdown($_[1], 1) or die $! });
};

subtest 'a connection that the node resets' => sub {
    broken(sub {
        my $accepted = $_[0]->accept or die $!;
        # To close means to reset, so.
        setsockopt($accepted, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0)) or die $!;
        close $accepted or die $!;
    });
};

done_testing;
