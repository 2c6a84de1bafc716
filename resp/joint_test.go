package resp

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A jointServer answers commands: HMGET with "key.field" for each field, unless the key begins with x, and any other command
// with its text.
func jointServer(t *testing.T, b *Batch) *tape {
	answers := new(tape)
	bulk := func(text string) {
		answers.vals = append(answers.vals, value{Bulk, uint32(len(answers.data)), uint32(len(text))})
		answers.data = append(answers.data, text...)
	}
	for i := range b.Len() {
		lines := strings.Split(string(b.Span(i, i+1)), "\r\n")
		var args []string
		for k := 2; k < len(lines); k += 2 {
			args = append(args, lines[k])
		}
		n, err := strconv.Atoi(lines[0][1:])
		require.NoError(t, err)
		require.Len(t, args, n)
		entry := len(answers.vals)
		answers.roots = append(answers.roots, uint32(entry))
		if args[0] != "HMGET" || args[1][0] == 'x' {
			bulk(strings.Join(args, " "))
			continue
		}
		answers.vals = append(answers.vals, value{kind: Array, n: uint32(n - 2)})
		for _, field := range args[2:] {
			bulk(args[1] + "." + field)
		}
		answers.vals[entry].off = uint32(len(answers.vals))
	}
	return answers
}

// textOf writes a reply.
func textOf(r Reply) string {
	if r.Kind() != Array {
		return string(r.Bytes())
	}
	var all []string
	for e := range r.All() {
		all = append(all, string(e.Bytes()))
	}
	return "[" + strings.Join(all, " ") + "]"
}

func TestJoint(t *testing.T) {
	var j Joint
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 50))
		var asked Batch
		ask := func(n int) {
			for range n {
				key := []string{"a", "b", "x", "item:"}[rng.IntN(4)] + strconv.Itoa(rng.IntN(1+rng.IntN(40)))
				switch rng.IntN(4) {
				case 0:
					asked.Cmd("GET", key)
				case 1:
					asked.Cmd("HMGET", key, fmt.Sprint("f", rng.IntN(3)))
				default:
					asked.Cmd("HMGET", key, fmt.Sprint("f", rng.IntN(3)), "g")
				}
			}
		}
		ask(rng.IntN(60))
		own := asked.Len()
		j.Begin(&asked)
		for range rng.IntN(3) {
			from := asked.Len()
			ask(rng.IntN(60))
			j.Join(from, asked.Len())
		}
		var sent Batch
		j.Write(&sent)
		require.Equal(t, j.Len(), sent.Len())
		answers := jointServer(t, &sent)
		replies := Replies{t: answers, n: uint32(sent.Len())}
		want := jointServer(t, &asked)
		var got Gathered
		seen := 0
		heads := map[string]bool{}
		for i := range sent.Len() {
			for k := j.First(i); k >= 0; k = j.Next(k) {
				j.Put(&got, k, asked.Len(), k, replies.At(i))
				seen++
			}
			if i < own {
				assert.Equal(t, i, j.First(i), "the asker's own commands keep their places")
				continue
			}
			identity, _ := identityOf(sent.Span(i, i+1))
			assert.False(t, heads[string(identity)], "seed %d: a command was sent twice: %q", seed, identity)
			heads[string(identity)] = true
		}
		require.Equal(t, asked.Len(), seen)
		for k := range asked.Len() {
			command := Reply{want, want.roots[k]}
			if strings.Contains(string(asked.Span(k, k+1)), "HMGET") && command.Kind() != Array {
				continue // It cannot be divided: each gets the whole.
			}
			assert.Equal(t, textOf(command), textOf(got.Replies().At(k)), "seed %d, command %d", seed, k)
		}
	}
}
