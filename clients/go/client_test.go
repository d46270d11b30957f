package idgenclient

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"

	"idgenclient/idgen"
)

var ctx = context.Background()

// Needs CLIENTS_NODE, a node with the types of scripts/test-clients.sh.
func TestEveryPair(t *testing.T) {
	set := &thrift.TConfiguration{ConnectTimeout: 10 * time.Second, SocketTimeout: 10 * time.Second}
	transports := map[string]thrift.TTransportFactory{
		"framed":   thrift.NewTFramedTransportFactoryConf(thrift.NewTTransportFactory(), set),
		"buffered": thrift.NewTBufferedTransportFactory(8192),
	}
	protocols := map[string]thrift.TProtocolFactory{
		"binary":  thrift.NewTBinaryProtocolFactoryConf(set),
		"compact": thrift.NewTCompactProtocolFactoryConf(set),
	}
	last := int64(0)
	for transport, wrap := range transports {
		for protocol, factory := range protocols {
			t.Run(transport+" "+protocol, func(t *testing.T) {
				wrapped, err := wrap.GetTransport(thrift.NewTSocketConf(os.Getenv("CLIENTS_NODE"), set))
				must(t, err)
				must(t, wrapped.Open())
				defer wrapped.Close()
				client := idgen.NewIdGenServiceClientFactory(wrapped, factory)
				last = ids(t, client, last)
				large(t, client)
				texts(t, client)
				refusals(t, client)
			})
		}
	}
}

// ids ascend, by every method and over all pairs.
func ids(t *testing.T, client *Client, last int64) int64 {
	ascend := func(id int64) {
		if id <= last {
			t.Fatalf("%d after %d", id, last)
		}
		last = id
	}
	for i := 0; i < 200; i++ {
		id, err := client.NextId(ctx, "order")
		must(t, err)
		ascend(id)
	}
	ranges, err := client.NextIds(ctx, "order", 1000)
	must(t, err)
	count := int64(0)
	for _, part := range ranges {
		ascend(part.First)
		last = part.First + part.Count - 1
		count += part.Count
	}
	equal(t, int64(1000), count)
	long, err := client.GetId(ctx, "go", "order")
	must(t, err)
	equal(t, int32(200), long.GetRes())
	ascend(long.GetValue())
	str, err := client.GetStrId(ctx, "go", "order", true)
	must(t, err)
	ascend(number(t, strings.TrimPrefix(str.GetValue(), "OD")))
	text, err := client.NextStringId(ctx, "order", true)
	must(t, err)
	ascend(number(t, strings.TrimPrefix(text, "OD")))
	return last
}

// large: numbers above 2^53 and near 2^63 are exact; text and number follow each other.
func large(t *testing.T, client *Client) {
	for _, idType := range []string{"big", "huge"} {
		text, err := client.NextStringId(ctx, idType, false)
		must(t, err)
		id, err := client.NextId(ctx, idType)
		must(t, err)
		equal(t, true, id > 1<<53)
		equal(t, number(t, text)+1, id)
		told, err := client.DecodeId(ctx, idType, text)
		must(t, err)
		equal(t, number(t, text), told.GetID())
	}
}

// texts are UTF-8 both ways.
func texts(t *testing.T, client *Client) {
	text, err := client.NextStringId(ctx, "umlaut", true)
	must(t, err)
	equal(t, true, regexp.MustCompile("^Größe-№-[0-9]+$").MatchString(text))
	info, err := client.DescribeType(ctx, "umlaut")
	must(t, err)
	equal(t, "Größe-№-", info.Prefix)
	said, err := client.Echo(ctx, "go", "grüß dich, 世界 😀")
	must(t, err)
	equal(t, "grüß dich, 世界 😀", said.GetValue())
}

// refusals are typed, or in res.
func refusals(t *testing.T, client *Client) {
	_, err := client.NextId(ctx, "no-such-type")
	refused(t, err, "UNKNOWN_TYPE", false, "")
	_, err = client.NextIds(ctx, "order", 0)
	refused(t, err, "INVALID_ARGUMENT", false, "count")
	_, err = client.NextId(ctx, "down")
	refused(t, err, "UNAVAILABLE", true, "")
	long, err := client.GetId(ctx, "go", "no-such-type")
	must(t, err)
	equal(t, int32(553), long.GetRes())
	equal(t, int64(-1), long.GetValue())
	equal(t, true, strings.HasPrefix(long.GetExt(), "UNKNOWN_TYPE: "))
}

func refused(t *testing.T, err error, code string, retriable bool, field string) {
	t.Helper()
	var raised *idgen.IdGenException
	if !errors.As(err, &raised) {
		t.Fatalf("wanted %s, got %v", code, err)
	}
	equal(t, code, raised.Code)
	equal(t, retriable, raised.Retriable)
	equal(t, field, raised.GetField())
}

func number(t *testing.T, text string) int64 {
	t.Helper()
	id, err := strconv.ParseInt(text, 10, 64)
	must(t, err)
	return id
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, wanted, got T) {
	t.Helper()
	if wanted != got {
		t.Fatalf("wanted %v, got %v", wanted, got)
	}
}
