package peers

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// Text is a value of Redis. Immutable.
type Text struct {
	Value string
	Known bool // false if there is none
}

// Batch has the commands of a wave, then the replies to them. Its memory serves one wave after
// another. One goroutine at a time.
type Batch struct {
	keys     keys
	commands []command

	replies []Text // of all commands, one after another
	ends    []int  // by command: where its replies end
	errs    []error

	// The libraries use these fields while they send the commands and read the replies.
	completed []rueidis.Completed
	cacheable []rueidis.CacheableTTL
	cmders    []redis.Cmder
}

// command is one command. Its words are a name, some of the batch's keys, and arguments that
// are the same for many commands.
type command struct {
	name  string
	words int // entries of keys: the key, and members
	args  []string
	fresh bool // keeps no reply; the first command of a batch decides for all
}

// failed names the command in an error.
func (c *command) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", c.name, err)
}

// add appends a command on the key prefix+id.
func (b *Batch) add(name, prefix string, id int64, args ...string) {
	b.keys.add(prefix, id)
	b.commands = append(b.commands, command{name: name, words: 1, args: args})
}

// addNamed appends a command on a key that has no id.
func (b *Batch) addNamed(name, key string, args ...string) {
	b.keys.addText(key)
	b.commands = append(b.commands, command{name: name, words: 1, args: args})
}

// addFields appends HMGET of a hash. fields is the same slice for many commands.
func (b *Batch) addFields(prefix string, id int64, fields []string) {
	b.keys.add(prefix, id)
	b.commands = append(b.commands, command{name: "HMGET", words: 1, args: fields})
}

// addScores begins ZMSCORE of a sorted set; addMember goes on.
func (b *Batch) addScores(prefix string, id int64) {
	b.keys.add(prefix, id)
	b.commands = append(b.commands, command{name: "ZMSCORE", words: 1, fresh: true})
}

func (b *Batch) addMember(id int64) {
	b.keys.add("", id)
	b.commands[len(b.commands)-1].words++
}

// len returns the number of commands.
func (b *Batch) len() int { return len(b.commands) }

// answered appends the reply to the next command. The caller has appended its entries.
func (b *Batch) answered(err error) {
	b.ends, b.errs = append(b.ends, len(b.replies)), append(b.errs, err)
}

// Reply returns the entries of the reply to command i. They are valid until the batch is reset.
func (b *Batch) Reply(i int) ([]Text, error) {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.replies[start:b.ends[i]], b.errs[i]
}

// reset makes the batch empty.
func (b *Batch) reset() {
	b.keys.reset()
	clear(b.cacheable)
	clear(b.completed) // commands go back to rueidis's own pool
	clear(b.cmders)
	b.commands, b.replies, b.ends, b.errs = b.commands[:0], b.replies[:0], b.ends[:0], b.errs[:0]
	b.completed, b.cacheable, b.cmders = b.completed[:0], b.cacheable[:0], b.cmders[:0]
}

// batches lends batches. Any goroutine.
type batches struct{ pool sync.Pool }

func (p *batches) get() *Batch {
	if b, ok := p.pool.Get().(*Batch); ok {
		return b
	}
	return new(Batch)
}

func (p *batches) put(b *Batch) {
	b.reset()
	p.pool.Put(b)
}

// read sends a batch and calls take with each command's reply. It returns the first error.
func read(ctx context.Context, s Store, b *Batch, take func(i int, reply []Text)) error {
	s.Read(ctx, b)
	for i := range b.len() {
		reply, err := b.Reply(i)
		if err != nil {
			return err
		}
		take(i, reply)
	}
	return nil
}
