package respfront

import (
	"fmt"
	"strings"

	"github.com/tidwall/redcon"

	"github.com/rankd/rankd/internal/errtext"
)

// What a client may say about itself: the indices of session.about.
const (
	aboutName = iota
	aboutLib
	aboutLibVersion
	aboutFields
)

// aboutMax bounds each of them.
const aboutMax = 64

const textName = "ERR Client names cannot contain spaces, newlines or special characters, and have at most 64 bytes"

// fitsAbout reports whether a client may use this name.
func fitsAbout(text []byte) bool {
	for _, b := range text {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return len(text) <= aboutMax
}

// runClient is CLIENT with a subcommand. Subcommands about Redis's keys do nothing here but reply OK, which is what
// clients expect.
func runClient(c *codec, args [][]byte, dst []byte) []byte {
	sub := strings.ToUpper(errtext.Text(string(args[1])))
	rest := args[2:]
	switch {
	case sub == "ID" && len(rest) == 0:
		return redcon.AppendInt(dst, c.ID())
	case sub == "INFO" && len(rest) == 0:
		return redcon.AppendBulkString(dst, c.describe()+"\n")
	case sub == "GETNAME" && len(rest) == 0:
		if c.about[aboutName] == "" {
			return c.appendNull(dst)
		}
		return redcon.AppendBulkString(dst, c.about[aboutName])
	case sub == "SETNAME" && len(rest) == 1:
		return c.setAbout(aboutName, rest[0], dst)
	case sub == "SETINFO" && len(rest) == 2:
		switch strings.ToUpper(errtext.Text(string(rest[0]))) {
		case "LIB-NAME":
			return c.setAbout(aboutLib, rest[1], dst)
		case "LIB-VER":
			return c.setAbout(aboutLibVersion, rest[1], dst)
		}
		return redcon.AppendError(dst, "ERR Unrecognized option '"+errtext.Text(string(rest[0]))+"'")
	case (sub == "TRACKING" || sub == "CAPA") && len(rest) > 0,
		(sub == "NO-EVICT" || sub == "NO-TOUCH" || sub == "CACHING") && len(rest) == 1,
		sub == "REPLY" && len(rest) == 1 && strings.EqualFold(string(rest[0]), "ON"):
		return redcon.AppendOK(dst)
	case sub == "GETREDIR" && len(rest) == 0:
		return redcon.AppendInt(dst, -1)
	}
	return redcon.AppendError(dst, "ERR unknown subcommand or wrong number of arguments for '"+strings.ToLower(sub)+"'")
}

// setAbout notes what the client says about itself.
func (c *codec) setAbout(field int, text, dst []byte) []byte {
	if !fitsAbout(text) {
		return redcon.AppendError(dst, textName)
	}
	c.about[field] = string(text)
	return redcon.AppendOK(dst)
}

// describe returns what CLIENT INFO says.
func (c *codec) describe() string {
	proto := 2
	if c.proto3 {
		proto = 3
	}
	return fmt.Sprintf("id=%d addr=%s name=%s resp=%d lib-name=%s lib-ver=%s", c.ID(), c.Remote(),
		c.about[aboutName], proto, c.about[aboutLib], c.about[aboutLibVersion])
}
