package resp

import (
	"errors"
	"strings"
	"time"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/loop/clock"
)

// A ServerError is a reply by which the server refuses one command, such as
// "WRONGTYPE Operation against a key holding the wrong kind of value". The connection
// and the other commands of the batch are unharmed. Immutable once built.
type ServerError struct {
	Message  string // as sent, without the leading '-'
	Sentinel bool   // a sentinel has sent it
}

// Error implements error: the message on one line, shortened if it is long, and its meaning.
func (e *ServerError) Error() string {
	text := errtext.Text(e.Message)
	if meaning := e.Meaning(); meaning != "" {
		text += " (" + meaning + ")"
	}
	return text
}

// Code returns the first word of the message, by convention an upper-case class
// such as ERR, WRONGTYPE or LOADING.
func (e *ServerError) Code() string {
	code, _, _ := strings.Cut(e.Message, " ")
	return code
}

// Meaning says, for errors that concern the server and not the command, what the error means and what
// to do. It is empty for any other error.
func (e *ServerError) Meaning() string {
	switch e.Code() {
	case "LOADING":
		return "the server has started and still reads its data: ask again later"
	case "READONLY":
		return "the server is a replica, which takes no writes: use the address of its primary"
	case "MASTERDOWN":
		return "the replica has lost its primary and serves no old data: use the address of the primary, or set replica-serve-stale-data"
	case "TRYAGAIN":
		return "a Redis Cluster is moving the keys of the command: ask again"
	case "CLUSTERDOWN":
		return "the Redis Cluster serves no keys while a node is missing: see CLUSTER INFO"
	case "MOVED", "ASK":
		return "another node of a Redis Cluster holds the key: name the cluster as redis+cluster://host:port, or with cluster = true on its endpoint"
	case "NOAUTH":
		if e.Sentinel {
			return "the sentinel wants a password: give the endpoint one for sentinels, with sentinel_password_file or sentinel_password_env"
		}
		return "the server wants a password: give the endpoint one, with password_file or password_env"
	case "WRONGPASS":
		return "the user or the password is wrong, or the user is off: see ACL LIST"
	case "NOPERM":
		return "the user may not run the command or read the key: see ACL LIST"
	default:
		return ""
	}
}

// Denied reports whether the user lacks a right, or the login is refused: an operator has to change something first.
func (e *ServerError) Denied() bool {
	code := e.Code()
	return code == "NOPERM" || code == "NOAUTH" || code == "WRONGPASS"
}

// denialPause is how long a server that denies the user something isn't asked: an operator has to change something first.
const denialPause = 30 * time.Second

// Denial remembers that a server denies the user something, so that this is told once, and the server is asked less
// often. The zero value has heard no denial. One goroutine.
type Denial struct {
	message  string // of the last one since an answer; empty: none
	pauseEnd clock.Time
}

// Note takes the error of a question to the server, nil for an answer. Errors that deny nothing change nothing. news
// says that a denial is the first since the last answer, or gives another reason.
func (d *Denial) Note(err error, now clock.Time) (news bool) {
	if err == nil {
		*d = Denial{}
		return false
	}
	var refusal *ServerError
	if !errors.As(err, &refusal) || !refusal.Denied() {
		return false
	}
	news = d.message != refusal.Message
	*d = Denial{refusal.Message, now.Add(denialPause)}
	return news
}

// Pauses reports whether the server should not be asked yet.
func (d *Denial) Pauses(now clock.Time) bool { return now < d.pauseEnd }

// refusesAll reports whether the server refuses the connection, not the command.
func (e *ServerError) refusesAll() bool {
	return e.Code() == "NOAUTH" || strings.HasPrefix(e.Message, "ERR max number of clients")
}
