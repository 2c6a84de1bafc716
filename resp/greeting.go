package resp

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
)

// A Hello opens connections: it has the commands of Greeting, and checks their replies. Immutable; any goroutine.
type Hello struct {
	Batch   *Batch // may be empty
	options *Options
}

// Hello returns how the next connection is opened. It calls Login, which may wait, so it must not run on a loop.
func (o *Options) Hello() (*Hello, error) {
	if o.Login == nil {
		return &Hello{o.Greeting(), o}, nil
	}
	with := *o
	var err error
	if with.Username, with.Password, err = o.Login(); err != nil {
		return nil, fmt.Errorf("the password: %w", err)
	}
	return &Hello{with.Greeting(), &with}, nil
}

// Check is CheckGreeting.
func (h *Hello) Check(i int, reply Reply) error { return h.options.CheckGreeting(i, reply) }

// A hellos has the Hello of the next connection. The zero value has none yet. Loop only, except what prepare returns.
type hellos struct {
	now  *Hello                // of the present connection
	next atomic.Pointer[Hello] // that Login has given
}

// prepare returns the Prepare of a connection, nil if it needs none.
func (h *hellos) prepare(o *Options) func() error {
	if o.Login == nil {
		if h.now == nil {
			h.now = &Hello{o.Greeting(), o}
		}
		return nil
	}
	return func() error {
		next, err := o.Hello()
		if err == nil {
			h.next.Store(next)
		}
		return err
	}
}

// begin returns the Hello of a connection that has just been made.
func (h *hellos) begin() *Hello {
	if next := h.next.Load(); next != nil {
		h.now = next
	}
	return h.now
}

// Greeting returns the commands that open a connection: AUTH, SELECT, READONLY, CLUSTER MYID, ROLE, CLIENT SETNAME and
// CLIENT SETINFO, each if the options ask for it. The batch may be empty.
func (o *Options) Greeting() *Batch {
	var b Batch
	switch {
	case o.Password == "":
	case o.Username == "":
		b.Cmd("AUTH", o.Password)
	default:
		b.Cmd("AUTH", o.Username, o.Password)
	}
	if o.Database != 0 {
		b.Cmd("SELECT", strconv.Itoa(o.Database))
	}
	if o.ReadsReplica {
		b.Cmd("READONLY")
	}
	if o.Identify != nil {
		b.Cmd("CLUSTER", "MYID")
	}
	if o.Master != "" {
		b.Cmd("ROLE")
	}
	if o.ClientName != "" {
		b.Cmd("CLIENT", "SETNAME", o.ClientName)
	}
	if o.LibName != "" {
		b.Cmd("CLIENT", "SETINFO", "LIB-NAME", o.LibName)
	}
	if o.LibVersion != "" {
		b.Cmd("CLIENT", "SETINFO", "LIB-VER", o.LibVersion)
	}
	return &b
}

// CheckGreeting returns the reason why the reply to the i-th command of Greeting forbids the use of the connection,
// or nil. A client calls it as each reply comes: a server that is full answers one command and hangs up. The names
// come last and are a courtesy: old or partial servers may refuse them. But if a server answers a name by asking for
// a password, or by saying that it is full, it would answer every command so.
func (o *Options) CheckGreeting(i int, reply Reply) error {
	required := 0 // commands before the names
	if o.Password != "" {
		required++
	}
	if o.Database != 0 {
		required++
	}
	if o.ReadsReplica {
		required++
	}
	if o.Identify != nil {
		id, err := nodeID(reply)
		if refusal, _ := err.(*ServerError); i == required && (refusal == nil || !refusal.refusesAll()) {
			return o.Identify(id, err)
		}
		required++
	}
	if o.Master != "" {
		if i == required && !isMaster(reply) && reply.Kind() != Error {
			return errNoMaster
		}
		required++
	}
	err := reply.Err()
	if err == nil {
		return nil
	}
	refusal := err.(*ServerError)
	refusal.Sentinel = o.Sentinel
	if i == 0 && o.Password != "" {
		return o.loginError(refusal)
	}
	if i >= required && !refusal.refusesAll() {
		return nil
	}
	return refusal
}

// nodeIDMax bounds the id of a node in a Redis Cluster, in bytes: it has 40.
const nodeIDMax = 64

// nodeID reads a reply to CLUSTER MYID.
func nodeID(reply Reply) (id string, err error) {
	if err := reply.Err(); err != nil {
		return "", err
	}
	if n := len(reply.Bytes()); reply.Kind() != Bulk && reply.Kind() != SimpleString || n == 0 || n > nodeIDMax {
		return "", fmt.Errorf("CLUSTER MYID: the reply is %s of %d bytes, want an id of at most %d", reply.Kind(), n, nodeIDMax)
	}
	return string(reply.Bytes()), nil
}

// isMaster reports whether a reply to ROLE is that of a master.
func isMaster(role Reply) bool {
	return role.Kind() == Array && role.Len() > 0 && string(role.At(0).Bytes()) == "master"
}

var (
	errNoMaster       = errors.New("the server that sentinels name is no master by its own account (ROLE)")
	errQuotesPassword = errors.New("the server refuses AUTH with a message that may quote the password; rankd does not show it")
	errNoUsers        = errors.New("servers know users (ACL) from Redis 6 on")
)

// loginError returns the error for a refused AUTH. A server that does not know the command quotes its arguments,
// including the password.
func (o *Options) loginError(refusal *ServerError) error {
	switch {
	case refusal.Code() == "WRONGPASS":
		return &ServerError{Message: "WRONGPASS", Sentinel: refusal.Sentinel} // A password may be a word of the message.
	case strings.Contains(refusal.Message, o.Password), strings.Contains(refusal.Message, "args beginning with"):
		return errQuotesPassword
	case o.Username != "" && strings.Contains(refusal.Message, "wrong number of arguments"):
		return fmt.Errorf("%w; %w", refusal, errNoUsers)
	}
	return refusal
}
