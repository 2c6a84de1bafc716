package resptest

import "slices"

// An Event is what a Script decides about: an accepted connection, or a command on it.
// Immutable once built.
type Event struct {
	Conn    int      // the connection's number, from 1
	Command int      // the command's number on that connection, from 1; 0: it was accepted
	Args    []string // the command, its name first, as sent; nil if accepted
}

// A Script decides what happens to the reply to a command, when the command arrives. A nil
// fault delivers the reply. For an accepted connection the fault runs before any command is
// read, with an empty reply. Scripts are called from many goroutines.
type Script func(Event) Fault

// Always applies f to every command, including those that open a connection.
func Always(f Fault) Script { return After(0, f) }

// After applies f to all commands of a connection after the first n.
func After(n int, f Fault) Script {
	return func(e Event) Fault {
		if e.Command > n {
			return f
		}
		return nil
	}
}

// On applies f to the commands with one of these names, in upper case.
func On(f Fault, names ...string) Script {
	return func(e Event) Fault {
		if e.Command > 0 && slices.Contains(names, e.Args[0]) {
			return f
		}
		return nil
	}
}

// OnAccept applies f to connections as they are accepted.
func OnAccept(f Fault) Script {
	return func(e Event) Fault {
		if e.Command == 0 {
			return f
		}
		return nil
	}
}
