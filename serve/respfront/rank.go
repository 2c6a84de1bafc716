package respfront

import "github.com/tidwall/redcon"

// rank asks the service for one ranking, whose reply takes the next place. body may be nil. The service keeps nothing of the slices.
func (c *codec) rank(plan, user, body []byte) {
	q := c.Request()
	q.Caller, q.Plan, q.User, q.Body = c.caller, plan, user, body
	c.Ask()
}

// runRank is RANK plan user_id [json].
func runRank(c *codec, args [][]byte, dst []byte) []byte {
	var body []byte
	if len(args) == 4 {
		body = args[3]
	}
	c.rank(args[1], args[2], body)
	return dst
}

// runRankMany is RANK.MANY plan user_id...: an array with the replies of one RANK each. As many run at a time as a session may have.
func runRankMany(c *codec, args [][]byte, dst []byte) []byte {
	c.Reply(redcon.AppendArray(dst, len(args)-2))
	c.many = newMany(args[1], args[2:])
	c.Pend(true)
	return dst
}

// many is what is left to do of a RANK.MANY. The zero value is done. Loop only.
type many struct {
	plan  []byte
	users []byte // of all, one after the other
	ends  []int  // of each, in users
	begun int
}

// newMany copies plan and users, which are in a buffer of the connection.
func newMany(plan []byte, users [][]byte) many {
	m := many{plan: append([]byte(nil), plan...), ends: make([]int, len(users))}
	for i, user := range users {
		m.users = append(m.users, user...)
		m.ends[i] = len(m.users)
	}
	return m
}

// done reports whether all requests have begun.
func (m *many) done() bool { return m.begun == len(m.ends) }

// next returns the user of the request that begins now.
func (m *many) next() []byte {
	start := 0
	if m.begun > 0 {
		start = m.ends[m.begun-1]
	}
	end := m.ends[m.begun]
	m.begun++
	return m.users[start:end]
}

// runPlans is PLANS: the names of the plans that the caller may ask.
func runPlans(c *codec, _ [][]byte, dst []byte) []byte {
	plans := c.front.service.Plans(c.caller)
	sound := 0
	for i := range plans {
		if plans[i].Err == nil {
			sound++
		}
	}
	dst = redcon.AppendArray(dst, sound)
	for i := range plans {
		if plans[i].Err == nil {
			dst = redcon.AppendBulkString(dst, plans[i].Name)
		}
	}
	return dst
}
