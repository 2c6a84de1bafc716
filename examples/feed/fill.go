package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/resp"
	"github.com/rankd/rankd/resp/blocking"
)

// batchCommands is how many commands go to Redis at once.
const batchCommands = 500

// fill writes the data into a Redis. It replaces the keys of the same name.
func fill(ctx context.Context, redis string, s size, now time.Time) error {
	client := blocking.NewClient(clock.NewReal(), resp.Options{Addr: redis, ConnectTimeout: 10 * time.Second, RequestTimeout: time.Minute})
	defer client.Close()
	defer context.AfterFunc(ctx, client.Close)()
	var b resp.Batch
	send := func() error {
		defer b.Reset()
		return client.Do(&b, 0, func(replies resp.Replies) error {
			for _, reply := range replies.All() {
				if err := reply.Err(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := newWorld(s, now).eachCommand(func(command ...string) error {
		b.Cmd("DEL", command[1])
		b.Cmd(command...)
		if b.Len() < batchCommands {
			return nil
		}
		return send()
	})
	if err == nil {
		err = send()
	}
	if err != nil {
		return fmt.Errorf("filling Redis at %s: %w", redis, err)
	}
	return nil
}
