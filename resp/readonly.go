package resp

import "iter"

// ReadOnly reports whether an encoded command is known to change nothing, and to give everyone the same answer at one
// instant. It knows names in upper case. Redis's other read-only commands answer at random (SRANDMEMBER), wait, or
// concern the connection.
func ReadOnly(command []byte) bool {
	name, _ := commandName(command)
	switch string(name) {
	case "GET", "MGET", "STRLEN", "GETRANGE", "GETBIT", "BITCOUNT", "EXISTS", "TYPE",
		"HGET", "HMGET", "HGETALL", "HKEYS", "HVALS", "HLEN", "HEXISTS", "HSTRLEN",
		"LRANGE", "LINDEX", "LLEN", "LPOS",
		"SMEMBERS", "SISMEMBER", "SMISMEMBER", "SCARD", "SINTER", "SUNION", "SDIFF", "SINTERCARD",
		"ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE", "ZRANGEBYLEX", "ZREVRANGEBYLEX", "ZSCORE", "ZMSCORE",
		"ZRANK", "ZREVRANK", "ZCARD", "ZCOUNT", "ZLEXCOUNT", "ZINTER", "ZUNION", "ZDIFF", "ZINTERCARD",
		"GEOSEARCH", "GEODIST", "XRANGE", "XREVRANGE", "XLEN":
		return true
	}
	return false
}

// commandName returns the first argument of an encoded command, "*2\r\n$7\r\nHGETALL\r\n…", and where it ends.
func commandName(command []byte) (name []byte, end int) { return argument(command, 0) }

// Arguments iterates over the arguments of an encoded command, its name first. They are views.
func Arguments(command []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for at := 0; at < len(command); {
			var arg []byte
			if arg, at = argument(command, at); arg == nil || !yield(arg) {
				return
			}
			at += len("\r\n")
		}
	}
}

// argument returns the first argument from a place on, and where it ends.
func argument(command []byte, at int) (arg []byte, end int) {
	for at < len(command) && command[at] != '$' {
		at++
	}
	size := 0
	for at++; at < len(command) && command[at] != '\r'; at++ {
		size = size*10 + int(command[at]-'0')
	}
	at += len("\r\n")
	if at+size > len(command) {
		return nil, len(command)
	}
	return command[at : at+size], at + size
}
