package resptest

import (
	"strconv"
	"strings"

	"github.com/tidwall/redcon"
)

// Country returns the country of a user in the world of Followers.
func Country(id int64) string { return [...]string{"US", "DE", "IN", "BR"}[uint64(id)%4] }

// ListEntry returns entry i, from 0, of the list at prefix:id in the world of Followers. All of
// its lists differ, which shows whether a reply comes to the wrong command.
func ListEntry(prefix string, id int64, i int) int64 {
	return id + 1 + int64(i) + 1000*int64(len(prefix))
}

// Followers is an Answer of a made-up world. User n comes from Country(n) and has endless
// lists. It knows HGETALL prefix:n and LRANGE prefix:n 0 last. It also understands PING, ECHO,
// GET (which answers with its key), AUTH, SELECT and CLIENT. Any other command is an error.
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
		_, id, ok := splitKey(args[1])
		if !ok {
			return wrong()
		}
		reply := redcon.AppendArray(nil, 2)
		reply = redcon.AppendBulkString(reply, "country")
		return redcon.AppendBulkString(reply, Country(id))
	case name == "LRANGE" && len(args) == 4:
		prefix, id, ok := splitKey(args[1])
		last, err := strconv.Atoi(args[3])
		if !ok || err != nil || last < 0 || args[2] != "0" {
			return wrong()
		}
		reply := redcon.AppendArray(nil, last+1)
		for i := range last + 1 {
			reply = redcon.AppendBulkString(reply, strconv.FormatInt(ListEntry(prefix, id, i), 10))
		}
		return reply
	default:
		return wrong()
	}
}

// splitKey takes prefix:id apart.
func splitKey(key string) (prefix string, id int64, ok bool) {
	prefix, digits, _ := strings.Cut(key, ":")
	id, err := strconv.ParseInt(digits, 10, 64)
	return prefix, id, err == nil
}
