package respfront

import (
	"fmt"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/outcome"
	"github.com/rankd/rankd/serve"
)

// A command is what a session does for the name in the first argument. Immutable.
type command struct {
	name     string // upper case
	min, max int    // arguments, the name among them; max 0: any number
	open     bool   // also for a client that has not logged in
	// run appends the reply to dst, unless it takes a slot itself. args and dst are valid during the call.
	run     func(c *codec, args [][]byte, dst []byte) []byte
	group   string
	summary string
	usage   []string // names of the arguments, for a person who types
}

// keepBytes bounds the buffer of replies that one command leaves to the next.
const keepBytes = 1 << 20

// nameMax is the length of the longest name of a command.
const nameMax = 16

// commandTable returns all commands.
func commandTable() []command {
	return []command{
		{name: "RANK", min: 3, max: 4, run: runRank, group: "ranking",
			summary: "Ranks for a user; the answer is one JSON document.", usage: []string{"plan", "user_id", "[json]"}},
		{name: "RANK.MANY", min: 3, run: runRankMany, group: "ranking",
			summary: "Ranks for several users; one reply each, in order.", usage: []string{"plan", "user_id [user_id ...]"}},
		{name: "PLANS", min: 1, max: 1, run: runPlans, group: "ranking",
			summary: "Lists the plans that the client may ask."},
		{name: "PING", min: 1, max: 2, run: runPing, group: "connection",
			summary: "Answers PONG, or the message.", usage: []string{"[message]"}},
		{name: "ECHO", min: 2, max: 2, run: runEcho, group: "connection",
			summary: "Answers the message.", usage: []string{"message"}},
		{name: "HELLO", min: 1, open: true, run: runHello, group: "connection",
			summary: "Chooses RESP2 or RESP3, and logs in.", usage: []string{"[2|3]", "[AUTH name token]", "[SETNAME name]"}},
		{name: "AUTH", min: 2, max: 3, open: true, run: runAuth, group: "connection",
			summary: "Logs in with a token.", usage: []string{"[name]", "token"}},
		{name: "CLIENT", min: 2, run: runClient, group: "connection",
			summary: "Says something about this connection.", usage: []string{"subcommand", "[argument ...]"}},
		{name: "SELECT", min: 2, max: 2, run: runSelect, group: "connection",
			summary: "Accepts database 0, the only one.", usage: []string{"index"}},
		{name: "RESET", min: 1, max: 1, open: true, run: runReset, group: "connection",
			summary: "Forgets login, protocol and name of this connection."},
		{name: "QUIT", min: 1, open: true, run: runQuit, group: "connection",
			summary: "Closes the connection after the replies that are due."},
		{name: "COMMAND", min: 1, run: runCommand, group: "server",
			summary: "Describes the commands.", usage: []string{"[COUNT|LIST|DOCS|INFO]", "[name ...]"}},
		{name: "CONFIG", min: 2, run: runConfig, group: "server",
			summary: "Says that nothing is persisted: flags configure rankd.", usage: []string{"GET", "name [name ...]"}},
		{name: "INFO", min: 1, run: runInfo, group: "server",
			summary: "Says what runs here, and how much it has done.", usage: []string{"[section ...]"}},
	}
}

// run does what a client has sent.
func (c *codec) run(args [][]byte) {
	f := c.front
	f.commandsRun.Add(1)
	text := c.text[:0]
	if cmd, ok := f.command(args[0]); !ok {
		text = c.unknown(args, text)
	} else if len(args) < cmd.min || cmd.max > 0 && len(args) > cmd.max {
		text = redcon.AppendError(text, "ERR wrong number of arguments for '"+strings.ToLower(cmd.name)+"' command")
	} else if class := c.mayRun(cmd); class != outcome.OK {
		text = append(text, c.Refuse(class, refusal(class))...)
	} else {
		text = cmd.run(c, args, text)
	}
	if len(text) > 0 {
		c.Reply(text)
	}
	if cap(text) > keepBytes {
		text = nil
	}
	c.text = text
}

// refusal returns the detail for a class that mayRun returns.
func refusal(class outcome.Class) string {
	if class == outcome.ShuttingDown {
		return "the server closes this connection"
	}
	return "log in with AUTH or HELLO"
}

// command finds a command by its name in any case.
func (f *Front) command(name []byte) (cmd *command, ok bool) {
	var upper [nameMax]byte
	if len(name) > nameMax {
		return nil, false
	}
	for i, b := range name {
		if b >= 'a' && b <= 'z' {
			b -= 'a' - 'A'
		}
		upper[i] = b
	}
	cmd, ok = f.commands[string(upper[:len(name)])]
	return cmd, ok
}

// mayRun returns OK, or why the client may not run c now. The rights of its token may have changed.
func (c *codec) mayRun(cmd *command) outcome.Class {
	switch {
	case cmd.open:
		return outcome.OK
	case c.Draining():
		return outcome.ShuttingDown
	case !c.renew():
		return outcome.Unauthenticated
	}
	return outcome.OK
}

// unknown answers a command that does not exist. A browser that was made to connect here sends a header of HTTP: it
// gets no chance to send a body that has commands.
func (c *codec) unknown(args [][]byte, dst []byte) []byte {
	switch strings.ToUpper(errtext.Text(string(args[0]))) {
	case "POST", "HOST:":
		c.CutOff(serve.CutProtocol)
		return dst
	}
	text := fmt.Sprintf("ERR unknown command '%s'", errtext.Text(string(args[0])))
	if len(args) > 1 {
		text += fmt.Sprintf(", with args beginning with: '%s'", errtext.Text(string(args[1])))
	}
	return redcon.AppendError(dst, text)
}
