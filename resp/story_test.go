package resp

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/loop/clock"
	"github.com/rankd/rankd/reactor/transport"
)

var update = flag.Bool("update", false, "rewrite the expected output of the stories in testdata")

// TestClientStories replays the stories in testdata/client. A story has a client on a network,
// and lines of commands that begin with ">". The commands of a line come one after another.
// Then the loop runs until nothing happens any more. Time passes only in a wait. Below the line
// stand its consequences: dials, commands that servers receive, and ends of calls. Commands in
// flight and calls waiting follow, if there are any. Between all of them checkInvariants holds.
//
//	=== title                   begins a story
//	# words                     a remark
//	with MaxInflight=4 …        options of the client
//
//	do a                        gives the client a call named a, of the command GET a:0
//	do a 3 within 5ms           of GET a:0 to GET a:2, with a deadline; the same name is the same Call
//	do a 3 for R                a call of the request R
//	do a 3 in pieces            its replies are handed over part by part
//	do a 3 expecting 5000       each reply may have so many bytes
//	do a: ERR x | LIST y z      of these commands
//	when a ends: do b; close    what the next Done of a does: commands, or panic
//	when a piece of a comes: …  what the next Part of a does
//	cancel a
//	close                       closes the client
//	wait 5ms                    lets time pass
//	mute, talk                  servers keep their answers, or give them
//	answer 2 [on 1]             a muted server gives two answers, or all; on the last connection or the first
//	answer bytewise             gives all, in pieces of one byte
//	instead of AUTH: "-ERR\r\n" servers answer so to commands that begin with these words
//	refuse, accept, ignore      the outcome of dials: an error, a connection, none
//	hang up [on 1]              the server ends the connection
//	say "+OK\r\n"               bytes that nobody asked for
//	hold 2, dial 2              the client's second connection is not dialed, or is dialed
//	stats                       prints the client's counters
//
//	track a: b:                 has a Tracker, which allows a silence of 900ms, track prefixes; * is the empty one
//	track reads                 the same, of keys that the client reads
//	ask a:1                     prints whether changes of keys with this prefix are told of, and the tracker trusts the server
//	tell 3 keys k               the server says in one message that k:0 to k:2 have changed
//	when tracking ends: …       what the next loss does: commands, or panic
//	when a key changes: …       what the next change does
//	stop tracking               closes the tracker
//
// An error is shown without the server's address. errors.Is must find every condition that its
// text names, and no other.
//
// A story ends once its client is closed and the loop has come to rest.
func TestClientStories(t *testing.T) {
	files, err := filepath.Glob("testdata/client/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			var output strings.Builder
			for _, part := range strings.Split(string(text), "=== ")[1:] {
				title, lines, _ := strings.Cut(part, "\n")
				t.Run(title, func(t *testing.T) {
					fmt.Fprintf(&output, "=== %s\n%s\n", title, replay(t, strings.Split(lines, "\n")))
				})
			}
			want := strings.TrimSpace(string(text))
			got := strings.TrimSpace(output.String())
			if *update && !t.Failed() {
				require.NoError(t, os.WriteFile(file, []byte(got+"\n"), 0o644))
			}
			assert.Equal(t, want, got)
		})
	}
}

// A story is one that is being replayed.
type story struct {
	t      testing.TB
	net    *network
	opts   Options
	client *Client
	out    strings.Builder
	calls  map[string]*storyCall
	flows  map[string]*Flow
	asked  map[string]int // by key: commands of calls that Do has accepted
	within bool           // a command is at work: Done must not be invoked

	tracker   *Tracker
	trackLost []string // what its next loss does
	keyThen   []string // what the next change of a key does
}

type storyCall struct {
	name  string
	call  Call
	size  int      // of GET name:0 and so on; 0 if the story gave the commands
	then  []string // what its next Done does
	piece []string // what its next Part does
	parts []string // handed over in this use
}

// replay runs the commands among the lines, and returns all lines with the output of today.
func replay(t testing.TB, lines []string) string {
	s := &story{t: t, net: newNetwork(t), calls: map[string]*storyCall{}, flows: map[string]*Flow{}, asked: map[string]int{}}
	s.net.log = func(format string, args ...any) { fmt.Fprintf(&s.out, format+"\n", args...) }
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "# "):
			fmt.Fprintln(&s.out, line)
		case strings.HasPrefix(line, "with "):
			fmt.Fprintln(&s.out, line)
			for _, field := range strings.Fields(line)[1:] {
				setOption(t, &s.opts, field)
			}
		case strings.HasPrefix(line, "> "):
			if s.client == nil {
				s.client = newClient(s.net, s.opts)
			}
			fmt.Fprintln(&s.out, line)
			s.run(line[len("> "):])
		}
	}
	require.NotNil(t, s.client, "a story without commands")
	s.checkExecuted()
	text := s.out.String()
	s.client.Close()
	if s.tracker != nil {
		s.tracker.Close()
	}
	s.net.settle()
	checkInvariants(t, s.client)
	for _, c := range s.calls {
		require.Equal(t, callIdle, c.call.state, "call %s has not ended", c.name)
	}
	return text
}

// setOption sets Name=value.
func setOption(t testing.TB, o *Options, field string) {
	name, value, _ := strings.Cut(field, "=")
	f := reflect.ValueOf(o).Elem().FieldByName(name)
	require.True(t, f.IsValid(), field)
	switch f.Interface().(type) {
	case string:
		f.SetString(value)
	case int:
		f.SetInt(int64(atoi(t, value)))
	case bool:
		f.SetBool(value == "true")
	case time.Duration:
		f.SetInt(int64(duration(t, value)))
	default:
		require.Fail(t, "an option of another type", field)
	}
}

func atoi(t testing.TB, text string) int {
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}

func duration(t testing.TB, text string) time.Duration {
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// run runs a line of commands and lets everything happen that follows from it now.
func (s *story) run(line string) {
	commands := []string{line}
	if !strings.HasPrefix(line, "when ") { // its commands come later
		commands = strings.Split(line, "; ")
	}
	for _, c := range commands {
		s.within = true
		s.command(c)
		s.within = false
	}
	s.settle()
	checkInvariants(s.t, s.client)
	if stats := s.client.Stats(); stats.Inflight+stats.Waiting > 0 {
		fmt.Fprintf(&s.out, "[%d in flight, %d waiting]\n", stats.Inflight, stats.Waiting)
	}
}

// settle contains the panic of a Done, as a host does.
func (s *story) settle() {
	defer func() {
		if r := recover(); r == errStory {
			s.net.log("a callback panics")
			s.net.settle()
		} else if r != nil {
			panic(r)
		}
	}()
	s.net.settle()
}

// errStory is the panic of a Done.
var errStory = errors.New("a panic of the story")

func (s *story) command(text string) {
	words := strings.Fields(text)
	rest := strings.TrimSpace(strings.TrimPrefix(text, words[0]))
	n := s.net
	switch words[0] {
	case "do":
		s.do(rest)
	case "when":
		if name, then, ok := strings.Cut(rest, " comes: "); ok {
			s.call(strings.TrimPrefix(name, "a piece of ")).piece = strings.Split(then, "; ")
			return
		}
		if then, ok := strings.CutPrefix(rest, "a key changes: "); ok {
			s.keyThen = strings.Split(then, "; ")
			return
		}
		name, then, ok := strings.Cut(rest, " ends: ")
		require.True(s.t, ok, text)
		if name == "tracking" {
			s.trackLost = strings.Split(then, "; ")
			return
		}
		s.call(name).then = strings.Split(then, "; ")
	case "panic":
		panic(errStory)
	case "cancel":
		if err := s.client.Cancel(&s.call(rest).call); err != nil {
			n.log("cancel %s: %v", rest, err)
		}
	case "close":
		s.client.Close()
	case "wait":
		s.within = false
		n.advance(duration(s.t, rest))
	case "mute":
		n.mute = true
	case "talk":
		n.mute = false
	case "refuse":
		n.refuse, n.silent = errors.New("refused"), false
	case "accept":
		n.refuse, n.silent = nil, false
	case "ignore":
		n.silent = true
	case "answer":
		s.answer(words[1:])
	case "instead":
		command, answer, ok := strings.Cut(strings.TrimPrefix(rest, "of "), ": ")
		require.True(s.t, ok, text)
		s.instead(command, unquote(s.t, answer))
	case "hang":
		s.peer(words[2:]).hangUp()
	case "say":
		s.net.last().arrive(unquote(s.t, rest))
	case "hold":
		s.client.conns[atoi(s.t, rest)-1].backoff.retryAt = clock.Never
	case "dial":
		s.client.conns[atoi(s.t, rest)-1].dial(n.h.Loop.Now())
	case "stats":
		if s.tracker != nil {
			n.log("%s", showStats(s.tracker.Stats()))
		} else {
			n.log("%s", showStats(s.client.Stats()))
		}
	case "track":
		if s.tracker == nil {
			s.opts.Addr = addr
			s.tracker = NewTracker(n.h.Loop, n, s.opts, 900*time.Millisecond, s, s.trackingChanged)
		}
		prefixes := words[1:]
		if strings.Join(prefixes, " ") == "reads" {
			s.tracker.TrackReads(s.client)
		}
		for i := range prefixes {
			prefixes[i] = strings.TrimSuffix(prefixes[i], "*")
		}
		s.tracker.Track(prefixes)
	case "ask":
		n.log("told of %s: %v; trusted: %v", words[1], s.tracker.Covers([]byte(words[1])), s.tracker.Trusted())
	case "tell":
		n.last().arrive(keysChanged(words[3], atoi(s.t, words[1])))
	case "stop":
		s.tracker.Close()
	default:
		require.Fail(s.t, "unknown command "+text)
	}
}

func unquote(t testing.TB, text string) []byte {
	plain, err := strconv.Unquote(text)
	require.NoError(t, err, text)
	return []byte(plain)
}

// peer returns the connection of "on 1", or else the last.
func (s *story) peer(words []string) *peer {
	if len(words) == 0 {
		return s.net.last()
	}
	return s.net.conns[atoi(s.t, words[1])-1]
}

func (s *story) answer(words []string) {
	p := s.peer(words[1:])
	switch words[0] {
	case "all":
		p.answer(len(p.answers))
	case "bytewise":
		all := slices.Concat(p.answers...)
		p.answers = nil
		for i := range all {
			p.arrive(all[i : i+1])
			s.within = false
			s.net.settle()
			checkInvariants(s.t, s.client)
		}
	default:
		p.answer(atoi(s.t, words[0]))
	}
}

// instead has servers answer to commands that begin with some words.
func (s *story) instead(command string, answer []byte) {
	former := s.net.greet
	s.net.greet = func(args []string) ([]byte, bool) {
		if strings.HasPrefix(strings.Join(args, " ")+" ", command+" ") {
			return answer, true
		}
		if former == nil {
			return nil, false
		}
		return former(args)
	}
}

// call returns the call of a name.
func (s *story) call(name string) *storyCall {
	c := s.calls[name]
	if c == nil {
		c = &storyCall{name: name}
		c.call.Done = func(call *Call) { s.ended(c) }
		s.calls[name] = c
	}
	return c
}

// do gives a call to the client: "name", "name size", "name: commands", each with or without "within 5ms" and
// the like.
func (s *story) do(text string) {
	text, within, limited := strings.Cut(text, " within ")
	text, flow, _ := strings.Cut(text, " for ")
	text, expected, _ := strings.Cut(text, " expecting ")
	text, inPieces := strings.CutSuffix(text, " in pieces")
	head, commands, given := strings.Cut(text, ": ")
	words := strings.Fields(head)
	c := s.call(words[0])
	if c.call.state == callIdle {
		c.call.Batch.Reset()
		c.call.Deadline = 0
		c.call.Part = nil
		c.size, c.parts = 0, nil
		if given {
			for _, command := range strings.Split(commands, " | ") {
				args := strings.Fields(command)
				c.call.Batch.Cmd(args...)
			}
		} else {
			c.size = 1
			if len(words) > 1 {
				c.size = atoi(s.t, words[1])
			}
			for i := range c.size {
				c.call.Batch.Cmd("GET", fmt.Sprintf("%s:%d", c.name, i))
			}
		}
		if limited {
			c.call.Deadline = s.net.h.Clock.Now().Add(duration(s.t, within))
		}
		if flow != "" && s.flows[flow] == nil {
			s.flows[flow] = new(Flow)
		}
		c.call.Flow = s.flows[flow]
		if expected != "" {
			c.call.Batch.ExpectReplies(atoi(s.t, expected))
		}
		if inPieces {
			c.call.Part = func(*Call) { s.pieceCame(c) }
		}
	}
	defer func() {
		if r := recover(); r != nil {
			s.net.log("%s: panic: %v", c.name, r)
		}
	}()
	if err := s.client.Do(&c.call); err != nil {
		s.net.log("%s is refused: %s", c.name, s.showError(err))
		return
	}
	for rest := c.call.Batch.Encoded(); len(rest) > 0; {
		_, args, _, left, err := redcon.ReadNextCommand(rest, nil)
		require.NoError(s.t, err)
		s.asked[string(args[1])]++
		rest = left
	}
}

// pieceCame is Part of each call that has one.
func (s *story) pieceCame(c *storyCall) {
	require.False(s.t, s.within, "Part of %s within a call to the client", c.name)
	s.takePiece(c)
	s.net.log("%s gets %d replies from %d on", c.name, c.call.Replies.Len(), c.call.From)
	then := c.piece
	c.piece = nil
	for _, command := range then {
		s.command(command)
	}
}

// takePiece takes the replies to a call that has Part.
func (s *story) takePiece(c *storyCall) {
	require.Len(s.t, c.parts, c.call.From, "each reply once, and in order")
	for _, reply := range c.call.Replies.All() {
		c.parts = append(c.parts, show(s.t, reply))
	}
}

// ended is Done of each call.
func (s *story) ended(c *storyCall) {
	require.False(s.t, s.within, "Done of %s within a call to the client", c.name)
	switch {
	case c.call.Err != nil:
		require.Zero(s.t, c.call.Replies.Len())
		s.net.log("%s fails: %s", c.name, s.showError(c.call.Err))
	case c.call.Part != nil:
		s.takePiece(c)
		require.Equal(s.t, got(c.name, c.size), strings.Join(c.parts, "; "))
		s.net.log("%s ends: all %d as asked", c.name, c.size)
	case c.size > 0 && showAll(s.t, c.call.Replies) == got(c.name, c.size):
		s.net.log("%s ends: all %d as asked", c.name, c.size)
	default:
		s.net.log("%s ends: [%s]", c.name, showAll(s.t, c.call.Replies))
	}
	then := c.then
	c.then = nil
	for _, command := range then {
		s.command(command)
	}
}

// conditions are the errors that a caller may ask for.
var conditions = []error{
	ErrConnectionLost, ErrConnect, ErrTimeout, ErrQueueFull, ErrClosed, ErrTooLarge, ErrUnsolicited, errStalled, errPanicked,
	ErrDeadline, ErrTrackingRefused, errOverlap, io.EOF, transport.ErrConnectTimeout, transport.ErrUnsentLimit,
}

// showError returns the text of an error without the server's address, and checks that errors.Is finds in it
// what the text names, and nothing else.
func (s *story) showError(err error) string {
	text, ok := strings.CutPrefix(err.Error(), "redis "+addr+": ")
	require.True(s.t, ok, err)
	for _, condition := range conditions {
		named := slices.Contains(strings.Split(text, ": "), condition.Error()) || strings.HasSuffix(text, ": "+condition.Error())
		require.Equal(s.t, named, errors.Is(err, condition), "%v: %v", err, condition)
	}
	require.Equal(s.t, strings.Contains(text, ErrProtocol.Error()), errors.Is(err, ErrProtocol), err)
	return text
}

// checkExecuted checks that no command reached a server more often than calls asked for it.
func (s *story) checkExecuted() {
	for key, times := range s.asked {
		require.LessOrEqual(s.t, s.net.executed[key], times, key)
	}
}

// keysChanged returns the message that key:0 to key:n-1 have changed.
func keysChanged(key string, n int) []byte {
	push := redcon.AppendArray([]byte(">2\r\n$10\r\ninvalidate\r\n"), n)
	for i := range n {
		push = redcon.AppendBulkString(push, fmt.Sprintf("%s:%d", key, i))
	}
	return push
}

// Invalidate implements Invalidator.
func (s *story) Invalidate(key []byte) {
	s.net.log("%s has changed", key)
	then := s.keyThen
	s.keyThen = nil
	for _, command := range then {
		s.command(command)
	}
}

// InvalidateAll implements Invalidator.
func (s *story) InvalidateAll(clock.Time) { s.net.log("all keys may have changed") }

// trackingChanged is what the tracker calls.
func (s *story) trackingChanged(err error) {
	if err == nil {
		s.net.log("tracking stands")
		return
	}
	s.net.log("no tracking: %s", s.showError(err))
	then := s.trackLost
	s.trackLost = nil
	for _, command := range then {
		s.command(command)
	}
}

// showStats returns the counters that are not zero.
func showStats(stats any) string {
	var parts []string
	v := reflect.ValueOf(stats)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			parts = append(parts, fmt.Sprintf("%s %v", v.Type().Field(i).Name, v.Field(i)))
		}
	}
	return strings.Join(parts, ", ")
}

var getCommand = regexp.MustCompile(`^GET (.*):(\d+)$`)

// showCommands writes a row of GET a:0, GET a:1 and so on as "a:0-1".
func showCommands(commands []string) string {
	var parts []string
	name, from, to := "", 0, 0
	flush := func() {
		switch {
		case name == "":
		case from == to:
			parts = append(parts, fmt.Sprintf("%s:%d", name, from))
		default:
			parts = append(parts, fmt.Sprintf("%s:%d-%d", name, from, to))
		}
		name = ""
	}
	for _, c := range commands {
		m := getCommand.FindStringSubmatch(c)
		if m == nil {
			flush()
			parts = append(parts, c)
			continue
		}
		if i, _ := strconv.Atoi(m[2]); m[1] == name && i == to+1 {
			to++
		} else {
			flush()
			name, from, to = m[1], i, i
		}
	}
	flush()
	return strings.Join(parts, ", ")
}
