# A client of IdGen: example.pl HOST:PORT[,HOST:PORT…] [TYPE]

use v5.10;
use strict;
use warnings;

use Nodes;
use Scalar::Util qw(blessed);

# What $method returns; instead of an IdGenException that, as the second value.
sub attempt {
    my ($nodes, $method) = @_;
    my $answer = eval { $nodes->call($method) };
    return $answer unless $@;
    die $@ unless blessed($@) && $@->isa('IdGen::IdGenException');
    return (undef, $@);
}

# As attempt, but an IdGenException ends the program.
sub must {
    my ($nodes, $method) = @_;
    my ($answer, $error) = attempt($nodes, $method);
    die sprintf("failed after %d attempts: %s: %s\n", $nodes->tried, $error->code, $error->message)
        if $error;
    return $answer;
}

my $type  = $ARGV[1] // 'order';
my $nodes = Nodes->new([split /,/, $ARGV[0]]);

say 'id: ', must($nodes, sub { $_[0]->nextId($type) });

my $ranges = must($nodes, sub { $_[0]->nextIds($type, 100) });
my @ids    = map { my $range = $_; map { $range->first + $_ } 0 .. $range->count - 1 } @$ranges;
say "ids: $ids[0] to $ids[-1]";

# Texts are UTF-8 bytes: for printing that is what it takes. See README.md.
say 'text: ', must($nodes, sub { $_[0]->nextStringId($type, 1) });

my (undef, $error) = attempt($nodes, sub { $_[0]->nextId('no-such-type') });
say 'refused: ', $error->code if $error;
$nodes->close;
