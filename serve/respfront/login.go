package respfront

import (
	"strings"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/outcome"
)

// imitated is the version of Redis whose connection commands a session mirrors. Clients read it in the reply to
// HELLO, and choose their commands by it.
const imitated = "7.2.0"

// refusedLoginsMax is how many wrong tokens a connection may show.
const refusedLoginsMax = 8

// Errors about a login, worded as in Redis: clients look for the words.
const (
	textWrongPass  = "WRONGPASS invalid token, or one of another name"
	textNoPassword = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"
	textNoProto    = "NOPROTO unsupported protocol version"
	textSyntax     = "ERR syntax error"
)

// renew refreshes the client's rights. It reports whether the client has logged in, or need not.
func (c *codec) renew() bool {
	store := c.front.store
	if c.caller != nil {
		if caller, ok := store.Renew(c.caller); ok {
			c.caller = caller
			return true
		}
	}
	c.caller = store.Anonymous()
	return c.caller != nil
}

// login logs the client in. It returns the text of an error, "" if there is none. name may be nil.
func (c *codec) login(name, token []byte) string {
	store := c.front.store
	if store.Anonymous() != nil {
		return textNoPassword
	}
	caller, ok := store.Lookup(token)
	if name != nil {
		caller, ok = store.Login(name, token)
	}
	if ok {
		c.caller = caller
		return ""
	}
	c.Refuse(outcome.Unauthenticated, "a login with a wrong token")
	if c.refusedLogins++; c.refusedLogins >= refusedLoginsMax {
		c.End()
	}
	return textWrongPass
}

// runAuth is AUTH [name] token.
func runAuth(c *codec, args [][]byte, dst []byte) []byte {
	var name []byte
	if len(args) == 3 {
		name = args[1]
	}
	if text := c.login(name, args[len(args)-1]); text != "" {
		return redcon.AppendError(dst, text)
	}
	return redcon.AppendOK(dst)
}

// runHello is HELLO [2|3] [AUTH name token] [SETNAME name]. Nothing changes if a part of it is refused.
func runHello(c *codec, args [][]byte, dst []byte) []byte {
	proto3 := c.proto3
	if len(args) > 1 {
		switch string(args[1]) {
		case "2":
			proto3 = false
		case "3":
			proto3 = true
		default:
			return redcon.AppendError(dst, textNoProto)
		}
	}
	var name, user, token []byte
	for rest := args[min(2, len(args)):]; len(rest) > 0; {
		switch option := strings.ToUpper(string(rest[0])); {
		case option == "AUTH" && len(rest) > 2:
			user, token, rest = rest[1], rest[2], rest[3:]
		case option == "SETNAME" && len(rest) > 1:
			name, rest = rest[1], rest[2:]
			if !fitsAbout(name) {
				return redcon.AppendError(dst, textName)
			}
		default:
			return redcon.AppendError(dst, textSyntax)
		}
	}
	if token != nil {
		if text := c.login(user, token); text != "" {
			return redcon.AppendError(dst, text)
		}
	}
	if !c.renew() {
		return redcon.AppendError(dst, "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used")
	}
	c.proto3 = proto3
	if name != nil {
		c.about[aboutName] = string(name)
	}
	return c.appendHello(dst)
}

// appendHello appends what HELLO answers.
func (c *codec) appendHello(dst []byte) []byte {
	proto := 2
	if c.proto3 {
		proto = 3
	}
	dst = c.appendMap(dst, 7)
	dst = redcon.AppendBulkString(redcon.AppendBulkString(dst, "server"), "rankd")
	dst = redcon.AppendBulkString(redcon.AppendBulkString(dst, "version"), imitated)
	dst = redcon.AppendInt(redcon.AppendBulkString(dst, "proto"), int64(proto))
	dst = redcon.AppendInt(redcon.AppendBulkString(dst, "id"), c.ID())
	dst = redcon.AppendBulkString(redcon.AppendBulkString(dst, "mode"), "standalone")
	dst = redcon.AppendBulkString(redcon.AppendBulkString(dst, "role"), "master")
	return redcon.AppendArray(redcon.AppendBulkString(dst, "modules"), 0)
}

// runReset is RESET: the connection becomes like a new one.
func runReset(c *codec, _ [][]byte, dst []byte) []byte {
	c.proto3, c.caller = false, nil
	c.about[aboutName] = ""
	return redcon.AppendString(dst, "RESET")
}

// runQuit is QUIT.
func runQuit(c *codec, _ [][]byte, dst []byte) []byte {
	c.End()
	return redcon.AppendOK(dst)
}
