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
	write := func(commands ...[]string) error {
		for _, c := range commands {
			b.Cmd(c...)
		}
		if b.Len() < batchCommands {
			return nil
		}
		return send()
	}
	for id := 1; id <= s.articles; id++ {
		a := makeArticle(id, now)
		if err := write([]string{"DEL", a.key()}, a.command()); err != nil {
			return fmt.Errorf("filling Redis at %s: %w", redis, err)
		}
	}
	for user := 1; user <= s.users; user++ {
		if err := write([]string{"DEL", inboxKey(user)}, inboxCommand(user, s, now)); err != nil {
			return fmt.Errorf("filling Redis at %s: %w", redis, err)
		}
	}
	if err := send(); err != nil {
		return fmt.Errorf("filling Redis at %s: %w", redis, err)
	}
	return nil
}
