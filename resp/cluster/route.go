package cluster

import "github.com/rankd/rankd/resp"

// afterStreams says that the first key follows the argument STREAMS.
const afterStreams = -1

// Route returns the slot of an encoded command. It is None for a command without a key, which any node can answer. All keys of one
// command must be in the same slot, or else the server refuses it (CROSSSLOT).
func Route(command []byte) int {
	if key, ok := Key(command); ok {
		return Slot(key)
	}
	return None
}

// Key returns the first key of an encoded command, a view. It knows from the command tables of Redis, by names in upper case, which commands have no
// key, or have it in another place than after the name.
func Key(command []byte) (key []byte, ok bool) {
	at, i := 0, 0
	for arg := range resp.Arguments(command) {
		switch {
		case i == 0:
			if at = keyAt(arg); at == 0 {
				return nil, false
			}
		case i == at:
			return arg, true
		case at == afterStreams && string(arg) == "STREAMS":
			at = i + 1
		case at == 3 && i == 2 && string(arg) == "0": // EVAL script 0
			return nil, false
		}
		i++
	}
	return nil, false
}

// keyAt returns the position of the first key of a command, or zero if it has none.
func keyAt(name []byte) int {
	switch string(name) {
	case "PING", "ECHO", "TIME", "INFO", "DBSIZE", "RANDOMKEY", "KEYS", "SCAN", "WAIT", "LASTSAVE", "FLUSHALL", "FLUSHDB",
		"CLIENT", "CLUSTER", "COMMAND", "CONFIG", "ACL", "SCRIPT", "FUNCTION", "LATENCY", "SLOWLOG", "MODULE", "HELLO", "AUTH", "SELECT",
		"PUBLISH", "PUBSUB", "READONLY", "READWRITE", "ASKING", "ROLE", "DEBUG":
		return 0
	case "BITOP", "OBJECT", "MEMORY", "XGROUP", "XINFO", "ZUNION", "ZINTER", "ZDIFF", "ZINTERCARD", "SINTERCARD", "LMPOP", "ZMPOP":
		return 2
	case "EVAL", "EVAL_RO", "EVALSHA", "EVALSHA_RO", "FCALL", "FCALL_RO":
		return 3
	case "XREAD", "XREADGROUP":
		return afterStreams
	}
	return 1
}
