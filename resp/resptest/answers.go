package resptest

import (
	"strconv"
	"strings"

	"github.com/tidwall/redcon"
)

// Followers is an Answer of a made-up world, in which user n comes from US and every
// list at prefix:n holds n+1, n+2, and so on: HGETALL prefix:n and LRANGE prefix:n 0 m
// know it. PING, ECHO, GET (which answers with its key), AUTH, SELECT and CLIENT are
// understood, too; any other command is an error.
func Followers(args []string) []byte {
	wrong := func() []byte { return redcon.AppendError(nil, "ERR cannot answer "+strings.Join(args, " ")) }
	switch name := strings.ToUpper(args[0]); {
	case name == "PING":
		return redcon.AppendString(nil, "PONG")
	case name == "AUTH", name == "SELECT", name == "CLIENT":
		return redcon.AppendOK(nil)
	case (name == "GET" || name == "ECHO") && len(args) == 2:
		return redcon.AppendBulkString(nil, args[1])
	case name == "HGETALL" && len(args) == 2:
		reply := redcon.AppendArray(nil, 2)
		reply = redcon.AppendBulkString(reply, "country")
		return redcon.AppendBulkString(reply, "US")
	case name == "LRANGE" && len(args) == 4:
		_, digits, _ := strings.Cut(args[1], ":")
		id, err := strconv.ParseInt(digits, 10, 64)
		last, err2 := strconv.Atoi(args[3])
		if err != nil || err2 != nil || last < 0 || args[2] != "0" {
			return wrong()
		}
		reply := redcon.AppendArray(nil, last+1)
		for i := range int64(last) + 1 {
			reply = redcon.AppendBulkString(reply, strconv.FormatInt(id+1+i, 10))
		}
		return reply
	default:
		return wrong()
	}
}
