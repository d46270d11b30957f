// A client of IdGen: example HOST:PORT[,HOST:PORT...] [TYPE]
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"idgenclient"
	"idgenclient/idgen"
)

func main() {
	ctx := context.Background()
	idType := "order"
	if len(os.Args) > 2 {
		idType = os.Args[2]
	}
	nodes := &idgenclient.Nodes{Addresses: strings.Split(os.Args[1], ",")}
	defer nodes.Close()

	var id int64
	check(nodes, nodes.Call(ctx, func(client *idgenclient.Client) (err error) {
		id, err = client.NextId(ctx, idType)
		return err
	}))
	fmt.Println("id:", id)

	var ranges []*idgen.IdRange
	check(nodes, nodes.Call(ctx, func(client *idgenclient.Client) (err error) {
		ranges, err = client.NextIds(ctx, idType, 100)
		return err
	}))
	last := ranges[len(ranges)-1]
	fmt.Println("ids:", ranges[0].First, "to", last.First+last.Count-1)

	var text string
	check(nodes, nodes.Call(ctx, func(client *idgenclient.Client) (err error) {
		text, err = client.NextStringId(ctx, idType, true)
		return err
	}))
	fmt.Println("text:", text)

	err := nodes.Call(ctx, func(client *idgenclient.Client) error {
		_, err := client.NextId(ctx, "no-such-type")
		return err
	})
	var refused *idgen.IdGenException
	if errors.As(err, &refused) {
		fmt.Println("refused:", refused.Code)
	}
}

func check(nodes *idgenclient.Nodes, err error) {
	var refused *idgen.IdGenException
	if errors.As(err, &refused) {
		fmt.Fprintf(os.Stderr, "failed after %d attempts: %s: %s\n",
			nodes.Tried, refused.Code, refused.Message)
		os.Exit(1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
