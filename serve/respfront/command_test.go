package respfront

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rankd/rankd/internal/testing/servetest"
	"github.com/rankd/rankd/serve/access"
	"github.com/rankd/rankd/serve/session"
)

// connectionID matches the id of a connection, in the reply to HELLO or alone.
var connectionID = regexp.MustCompile(`(^|\$2 id ):\d+\b`)

// Each case is a conversation on one connection: a command, and what comes back.
func TestCommands(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Version: "v9"}, nil)
	addr := w.listenTCP(t)
	long := strings.Repeat("x", 300)
	for name, conversation := range map[string][][2]string{
		"PING":                 {{"PING", "+PONG"}, {"ping hello", "$5 hello"}, {"PiNg", "+PONG"}},
		"ECHO":                 {{"ECHO hello", "$5 hello"}},
		"RANK":                 {{"RANK three 1", answerOfThree}, {"rank three 1", answerOfThree}},
		"RANK with a document": {{`RANK three 1 {"plan":"three","user_id":1}`, answerOfThree}, {`RANK three 1 {"user_id":2}`, "-BADREQ "}},
		"RANK, refused": {
			{"RANK three 0", "-BADREQ Invalid request: user_id as a string must be"}, {"RANK three x", "-BADREQ "}, {"RANK private 1", "-NOPERM "},
			{"RANK broken 1", "-INTERNAL Invalid plan: "}, {"RANK three 1 {", "-BADREQ Invalid JSON input"},
			{`RANK three 1 {"trace":true}`, "-NOPERM "}, {"PING", "+PONG"},
		},
		"wrong numbers of arguments": {
			{"RANK three", "-ERR wrong number of arguments for 'rank' command"}, {"RANK three 1 {} x", "-ERR wrong number"},
			{"rank.many three", "-ERR wrong number of arguments for 'rank.many' command"}, {"PING a b", "-ERR wrong number"},
		},
		"RANK.MANY": {{"RANK.MANY three 1 2", "*2 " + answerOfThree + " " + answerOfThree}},
		"PLANS":     {{"PLANS", "*3 $5 gated $4 many $5 three"}},
		"unknown": {
			{"GET key", "-ERR unknown command 'GET', with args beginning with: 'key'"}, {"NOPE", "-ERR unknown command 'NOPE'"},
			{"GET " + long, "-ERR unknown command 'GET', with args beginning with: '" + long[:200] + "…"}, {long, "-ERR unknown command '" + long[:200]},
			{"RANKRANKRANKRANKR", "-ERR unknown command"},
		},
		"HELLO": {
			{"HELLO", "*14 $6 server $5 rankd $7 version $5 7.2.0 $5 proto :2 $2 id :N $4 mode $10 standalone $4 role $6 master $7 modules *0"},
			{"HELLO 3", "%7 $6 server $5 rankd $7 version $5 7.2.0 $5 proto :3 $2 id :N $4 mode $10 standalone $4 role $6 master $7 modules *0"},
			{"CLIENT GETNAME", "_"}, {"HELLO 2 SETNAME me", "*14 "}, {"CLIENT GETNAME", "$2 me"},
			{"HELLO 4", "-NOPROTO "}, {"HELLO x", "-NOPROTO "}, {"HELLO 3 NONSENSE", "-ERR syntax error"}, {"HELLO 3 AUTH me", "-ERR syntax error"},
			{"HELLO 3 SETNAME " + long, "-ERR Client names"}, {"HELLO 3 AUTH default token", "-ERR AUTH <password> called without any password"},
			{"HELLO", "*14 "},
		},
		"CLIENT": {
			{"CLIENT ID", ":N"}, {"CLIENT GETNAME", "$-1"}, {"CLIENT SETNAME me", "+OK"}, {"CLIENT GETNAME", "$2 me"},
			{"CLIENT SETINFO LIB-NAME go-redis", "+OK"}, {"CLIENT setinfo lib-ver 1.2", "+OK"}, {"CLIENT SETINFO COLOUR red", "-ERR Unrecognized option 'COLOUR'"},
			{"CLIENT SETNAME " + long, "-ERR Client names"}, {"CLIENT TRACKING ON OPTIN", "+OK"}, {"CLIENT NO-EVICT ON", "+OK"}, {"CLIENT NO-TOUCH ON", "+OK"},
			{"CLIENT CAPA redirect", "+OK"}, {"CLIENT CACHING YES", "+OK"}, {"CLIENT REPLY ON", "+OK"}, {"CLIENT REPLY OFF", "-ERR unknown subcommand"},
			{"CLIENT GETREDIR", ":-1"}, {"CLIENT KILL 1", "-ERR unknown subcommand"}, {"CLIENT ID 1", "-ERR unknown subcommand"},
			{"CLIENT INFO", "name=me resp=2 lib-name=go-redis lib-ver=1.2"},
		},
		"SELECT": {{"SELECT 0", "+OK"}, {"SELECT 1", "-ERR DB index is out of range"}},
		"CONFIG": {
			{"CONFIG GET save", "*2 $4 save $0 "}, {"CONFIG GET appendonly SAVE save", "*4 $4 save $0  $10 appendonly $2 no"}, {"CONFIG GET maxmemory", "*0"},
			{"CONFIG SET save x", "-ERR only CONFIG GET"}, {"CONFIG GET", "-ERR only CONFIG GET"}, {"HELLO 3", "%7 "}, {"CONFIG GET save", "%1 $4 save $0 "},
		},
		"AUTH":  {{"AUTH token", "-ERR AUTH <password> called without any password"}, {"PING", "+PONG"}},
		"RESET": {{"HELLO 3 SETNAME me", "%7 "}, {"RESET", "+RESET"}, {"CLIENT GETNAME", "$-1"}},
		"INFO":  {{"INFO server", "rankd_version:v9 "}, {"INFO", "# Stats"}, {"INFO", "uptime_in_seconds:"}},
		"COMMAND": {
			{"COMMAND COUNT", ":N"}, {"COMMAND LIST", "*14 $4 rank $9 rank.many $5 plans "}, {"COMMAND", "*14 *10 $4 rank :-3 *1 +readonly :0 :0 :0 *0 *0 *0 *0 *10 "},
			{"COMMAND INFO ping nope quit", "*3 *10 $4 ping :-1 *1 +readonly :0 :0 :0 *0 *0 *0 *0 *-1 *10 $4 quit :-1 *1 +no_auth "},
			{"COMMAND DOCS echo", "-ERR unknown subcommand 'DOCS'"},
			{"COMMAND NOPE", "-ERR unknown subcommand 'NOPE'"}, {"HELLO 3", "%7 "}, {"COMMAND INFO nope", "*1 _"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			for _, said := range conversation {
				c.send(said[0])
				assert.Contains(t, connectionID.ReplaceAllString(c.receive(), "${1}:N"), said[1], said[0])
			}
		})
	}
}

func TestQuit(t *testing.T) {
	w := newWorld(t, everybody(t), Options{}, nil)
	c := dial(t, w.listenTCP(t))
	c.send("RANK gated 1", "QUIT", "PING")
	<-w.gate.entered
	w.gate.pass(1)
	assert.Contains(t, c.receive(), `"candidates":[{"id":1}]`)
	assert.Equal(t, "+OK", c.receive())
	c.ended()
}

// TestBytesThatAreNotACommand: such bytes get an error, after the replies that are due.
func TestBytesThatAreNotACommand(t *testing.T) {
	w := newWorld(t, everybody(t), Options{Options: session.Options{MaxRequestBytes: 100}, MaxArguments: 4}, nil)
	addr := w.listenTCP(t)
	for sent, want := range map[string]string{
		"*1\r\n:1\r\n":                   "-ERR Protocol error: expected '$'",
		"PING \"\r\n":                    "-ERR Protocol error: unbalanced quotes in request",
		"*5\r\n":                         "-TOOLARGE Request too large: a command may have 4 arguments, its name among them",
		"*2\r\n$4\r\nPING\r\n$100\r\n":   "-TOOLARGE Request too large: a command may have 100 bytes",
		strings.Repeat("x", inlineMax+1): "-ERR Protocol error: too big inline request",
		"*1\r\n$99999999999999999999\r\nPING\r\n*1": "-ERR Protocol error: invalid bulk length",
	} {
		c := dial(t, addr)
		c.send("RANK three 1")
		_, err := c.Write([]byte(sent))
		require.NoError(t, err)
		assert.Equal(t, answerOfThree, c.receive())
		assert.Equal(t, want, c.receive())
		c.ended()
	}
}

// tokens returns a store whose file has a token for each caller, and the path of that file.
func tokens(t *testing.T, plans map[string]string) (*access.Store, string) {
	path := filepath.Join(t.TempDir(), "tokens.toml")
	writeTokens(t, path, plans)
	store, err := access.Open(path)
	require.NoError(t, err)
	return store, path
}

// writeTokens writes a file of tokens. A caller's token is its name and "-token".
func writeTokens(t *testing.T, path string, plans map[string]string) {
	var text strings.Builder
	for name, plan := range plans {
		text.WriteString(servetest.Token(name, name+"-token", servetest.Plans(plan)))
	}
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
}

func TestLogin(t *testing.T) {
	store, _ := tokens(t, map[string]string{"feed": "three", "other": "many"})
	w := newWorld(t, store, Options{}, nil)
	addr := w.listenTCP(t)
	for name, conversation := range map[string][][2]string{
		"without a token": {
			{"PING", "-NOAUTH "}, {"RANK three 1", "-NOAUTH "}, {"RANK.MANY three 1", "-NOAUTH "}, {"PLANS", "-NOAUTH "}, {"CLIENT ID", "-NOAUTH "},
			{"HELLO", "-NOAUTH "}, {"HELLO 3", "-NOAUTH "}, {"NOPE", "-ERR unknown command"},
		},
		"AUTH token":         {{"AUTH feed-token", "+OK"}, {"RANK three 1", answerOfThree}, {"RANK many 1", "-NOPERM "}, {"PLANS", "*1 $5 three"}},
		"AUTH name token":    {{"AUTH feed feed-token", "+OK"}, {"RANK three 1", answerOfThree}},
		"AUTH default token": {{"AUTH default feed-token", "+OK"}, {"RANK three 1", answerOfThree}},
		"a wrong token":      {{"AUTH feed-Token", "-WRONGPASS "}, {"AUTH feed other-token", "-WRONGPASS "}, {"PING", "-NOAUTH "}},
		"HELLO":              {{"HELLO 3 AUTH default feed-token SETNAME me", "%7 "}, {"CLIENT GETNAME", "$2 me"}, {"PLANS", "*1 $5 three"}},
		"HELLO with a wrong one": {
			{"HELLO 3 AUTH feed nope SETNAME me", "-WRONGPASS "}, {"AUTH feed-token", "+OK"}, {"CLIENT GETNAME", "$-1"},
		},
		"another token": {{"AUTH feed-token", "+OK"}, {"AUTH other-token", "+OK"}, {"PLANS", "*1 $4 many"}, {"AUTH nope", "-WRONGPASS "}, {"PLANS", "*1 $4 many"}},
		"RESET":         {{"AUTH feed-token", "+OK"}, {"RESET", "+RESET"}, {"PING", "-NOAUTH "}},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			for _, said := range conversation {
				c.send(said[0])
				assert.Contains(t, c.receive(), said[1], said[0])
			}
		})
	}
}

// TestWrongTokensEndTheConnection has a client guess.
func TestWrongTokensEndTheConnection(t *testing.T) {
	store, _ := tokens(t, map[string]string{"feed": "three"})
	w := newWorld(t, store, Options{}, nil)
	c := dial(t, w.listenTCP(t))
	for range refusedLoginsMax {
		c.send("AUTH guess")
		assert.Contains(t, c.receive(), "-WRONGPASS ")
	}
	c.ended()
}

// TestStrangersSendLittle bounds commands before login.
func TestStrangersSendLittle(t *testing.T) {
	store, _ := tokens(t, map[string]string{"feed": "three"})
	w := newWorld(t, store, Options{}, nil)
	addr := w.listenTCP(t)
	for sent, want := range map[string]string{
		"*11\r\n":                          "-TOOLARGE Request too large: a command may have 10 arguments, its name among them",
		"*2\r\n$4\r\nAUTH\r\n$20000\r\nxx": "-TOOLARGE Request too large: a command may have 16384 bytes",
	} {
		c := dial(t, addr)
		_, err := c.Write([]byte(sent))
		require.NoError(t, err)
		assert.Equal(t, want, c.receive())
		c.ended()
	}
	c := dial(t, addr)
	c.send("AUTH feed-token", "ECHO "+strings.Repeat("x", 20_000), "RANK.MANY three 1 2 3 4 5 6 7 8 9 10 11 12")
	assert.Equal(t, "+OK", c.receive())
	assert.Greater(t, c.receiveLong(), 20_000)
	assert.Equal(t, 12, strings.Count(c.receive(), answerOfThree))
}

// TestRevokedTokens: while a client is logged in, its plans change and its token vanishes.
func TestRevokedTokens(t *testing.T) {
	store, path := tokens(t, map[string]string{"feed": "three", "other": "three"})
	w := newWorld(t, store, Options{}, nil)
	addr := w.listenTCP(t)
	feed, other := dial(t, addr), dial(t, addr)
	feed.send("AUTH feed-token", "RANK three 1")
	other.send("AUTH other-token", "RANK three 1")
	for _, c := range []*client{feed, other} {
		assert.Equal(t, "+OK", c.receive())
		assert.Equal(t, answerOfThree, c.receive())
	}
	writeTokens(t, path, map[string]string{"other": "many"})
	changed, err := store.Reload()
	require.NoError(t, err)
	require.True(t, changed)
	feed.send("RANK three 1", "PING", "AUTH feed-token")
	for _, want := range []string{"-NOAUTH ", "-NOAUTH ", "-WRONGPASS "} {
		assert.Contains(t, feed.receive(), want)
	}
	other.send("RANK three 1", "PLANS")
	assert.Contains(t, other.receive(), "-NOPERM ")
	assert.Equal(t, "*1 $4 many", other.receive())
}
