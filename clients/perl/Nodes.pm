package Nodes;

# One connection, to the first of the nodes that works; goes on to the next node where
# one does not answer.
#
# Copy this file into your project, beside the code that the Thrift compiler makes.

use v5.10;
use strict;
use warnings;

use IdGen::IdGenService;
use IdGen::Types;
use List::Util qw(any);
use Scalar::Util qw(blessed);
use Thrift::BinaryProtocol;
use Thrift::FramedTransport;
use Thrift::Socket;
use Time::HiRes qw(sleep);

# Nodes->new(['10.0.0.1:5900', …], %options). Options:
#
#   timeout     how long connecting, and each wait for the node, may take, in seconds; 2
#   attempts    how often a call is tried; 4
#   on_connect  is called with the client after each connecting; authenticate there, if
#               your cluster wants a token
sub new {
    my ($class, $nodes, %options) = @_;
    die "no nodes\n" unless @$nodes;
    return bless {
        nodes    => $nodes,
        timeout  => 2,
        attempts => 4,
        %options,
        at    => 0,
        tried => 0,
    }, $class;
}

# How many attempts the last call took.
sub tried { return $_[0]{tried} }

# What $method returns, which is called with a connected client.
#
# Tries again, on the next node, where a retry may help: after an IdGenException that
# says so, and where the node cannot be reached or does not answer. A repeated call may
# use up more ids; it never brings one twice. Dies with what the last attempt died with.
sub call {
    my ($self, $method) = @_;

    # A write to a connection that the node has closed must fail, not end the program.
    local $SIG{PIPE} = 'IGNORE';
    for (my $attempt = 1; ; $attempt++) {
        $self->{tried} = $attempt;
        my $answer;
        return $answer if eval { $answer = $method->($self->_connected); 1 };
        my $error = $@;
        if (blessed($error) && $error->isa('IdGen::IdGenException')) {
            die $error if !$error->retriable || $attempt >= $self->{attempts};
            $self->_go_on;
        }
        elsif (_is_broken($error)) {
            $self->_go_on;
            die $error if $attempt >= $self->{attempts};
        }
        else {
            # Perhaps half of a reply was read: nothing may read on behind it.
            $self->close;
            die $error;
        }

        # Every node had its turn. At random, so that clients do not come in step.
        sleep(0.05 + rand 0.1) if $attempt % @{ $self->{nodes} } == 0;
    }
}

# Closes the connection. The next call makes a new one.
sub close {
    my ($self) = @_;
    delete $self->{client};
    my $socket = delete $self->{socket};
    $socket->close if $socket;
    return;
}

# Whether it is the connection that failed.
sub _is_broken {
    my ($error) = @_;

    # What IO::Socket dies with where the node has reset the connection.
    return $error =~ /^send: / unless blessed($error);
    return any { $error->isa($_) } qw(Thrift::TTransportException Thrift::TProtocolException);
}

sub _go_on {
    my ($self) = @_;
    $self->close;
    $self->{at} = ($self->{at} + 1) % @{ $self->{nodes} };
    return;
}

sub _connected {
    my ($self) = @_;
    return $self->{client} if $self->{client};

    # What is left of a connection that on_connect failed with.
    $self->close;
    my ($host, $port) = $self->{nodes}[ $self->{at} ] =~ /^(.*):([0-9]+)$/
        or die "not HOST:PORT: $self->{nodes}[$self->{at}]\n";

    # The library counts in milliseconds.
    my $socket = Thrift::Socket->new({
        host        => $host,
        port        => $port,
        sendTimeout => $self->{timeout} * 1000,
        recvTimeout => $self->{timeout} * 1000,
    });
    $socket->open;
    $self->{socket} = $socket;
    my $protocol = Thrift::BinaryProtocol->new(Thrift::FramedTransport->new($socket));
    my $client   = IdGen::IdGenServiceClient->new($protocol);
    $self->{on_connect}->($client) if $self->{on_connect};
    return $self->{client} = $client;
}

1;
