package respfront

import (
	"fmt"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/internal/outcome"
	"github.com/rankd/rankd/serve"
)

// A command is what a session does for the name in the first argument. Immutable.
type command struct {
	name     string // upper case
	min, max int    // arguments, the name among them; max 0: any number
	open     bool   // also for a client that has not logged in
	// run appends the reply to dst, unless it takes a slot itself. args and dst are valid during the call.
	run func(c *codec, args [][]byte, dst []byte) []byte
}

// keepBytes bounds the buffer of replies that one command leaves to the next.
const keepBytes = 1 << 20

// nameMax is the length of the longest name of a command.
const nameMax = 16

// commandTable returns all commands.
func commandTable() []command {
	return []command{
		{name: "RANK", min: 3, max: 4, run: runRank},
		{name: "RANK.MANY", min: 3, run: runRankMany},
		{name: "PLANS", min: 1, max: 1, run: runPlans},
		{name: "PING", min: 1, max: 2, run: runPing},
		{name: "ECHO", min: 2, max: 2, run: runEcho},
		{name: "HELLO", min: 1, open: true, run: runHello},
		{name: "AUTH", min: 2, max: 3, open: true, run: runAuth},
		{name: "CLIENT", min: 2, run: runClient},
		{name: "SELECT", min: 2, max: 2, run: runSelect},
		{name: "RESET", min: 1, max: 1, open: true, run: runReset},
		{name: "QUIT", min: 1, open: true, run: runQuit},
		{name: "COMMAND", min: 1, run: runCommand},
		{name: "CONFIG", min: 2, run: runConfig},
		{name: "INFO", min: 1, run: runInfo},
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
