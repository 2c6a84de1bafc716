package plan

import (
	"fmt"
	"slices"

	"github.com/rankd/rankd/internal/errtext"
	"github.com/rankd/rankd/registry"
)

// entities finds what the rows of each node stand for. It refuses a node that mixes the rows of different entities, or whose op
// does not take ids that are texts. The graph has no cycle.
func (c *compiler) entities() {
	for _, index := range c.graph.Order {
		n := c.graph.Nodes[index]
		path := element("nodes", index)
		if bad := c.graph.passEntity(n); bad != "" {
			c.report(c.fail(n.ID, path, "%s", bad))
		}
		if n.Schema.Inherits == InheritsNothing {
			c.makeEntity(n, path)
		}
		if n.OnError == OnErrorSkip && n.Entity != n.InputEntity && (n.Entity.TextIDs() || n.InputEntity.TextIDs()) {
			c.report(c.fail(n.ID, member(path, "on_error"), "rows of %s cannot stand in for those of %s", label(n.InputEntity), label(n.Entity)))
		}
		if n.Entity.TextIDs() || n.InputEntity.TextIDs() {
			c.graph.TextIDs = true
		}
	}
	for _, n := range c.graph.Nodes {
		if f := n.StandsFor; f != nil && f.Entity != n.Entity && (f.Entity.TextIDs() || n.Entity.TextIDs()) {
			c.report(c.fail(n.ID, element("nodes", n.Index), "rows of %s cannot stand in for those of %s, of node %s", label(n.Entity), label(f.Entity), f.label()))
		}
	}
}

// makeEntity finds which entity the rows have that a node makes.
func (c *compiler) makeEntity(n *Node, path string) {
	n.Entity, _ = c.registry.Entity(n.Schema.Entity)
	for i := range n.Schema.Params {
		if p := &n.Schema.Params[i]; p.IsEntity && n.Params.Given(p.Name) {
			var ok bool
			if n.Entity, ok = c.registry.Entity(n.Params.String(p.Name)); !ok {
				c.report(c.fail(n.ID, path+".params."+p.Name, "%s", unknownEntity(n.Params.String(p.Name), c.registry)))
			}
		}
	}
	if n.Entity.TextIDs() && n.Schema.IDs == RefusesTextIDs {
		c.report(c.fail(n.ID, path, "makes rows of entity %s from integers, and the ids of that entity are strings", label(n.Entity)))
	}
}

// residents finds the plans whose rows nodes read from memory.
func (c *compiler) residents() {
	for _, n := range c.graph.Nodes {
		for i := range n.Schema.Params {
			p := &n.Schema.Params[i]
			if !p.IsPlan || !n.Params.Given(p.Name) {
				continue
			}
			switch name := n.Params.String(p.Name); {
			case !isName(name):
				c.report(c.fail(n.ID, element("nodes", n.Index)+".params."+p.Name, "%s: %v", errtext.Quote(name), ErrBadName))
			case name == c.graph.Name:
				c.report(c.fail(n.ID, element("nodes", n.Index)+".params."+p.Name, "is the plan itself"))
			case !slices.Contains(c.graph.Resident, name):
				c.graph.Resident = append(c.graph.Resident, name)
			}
		}
	}
}

func unknownEntity(name string, reg *registry.Registry) string {
	var names []string
	for _, e := range reg.Entities() {
		names = append(names, e.Name)
	}
	text := fmt.Sprintf("the registry has no entity %s", errtext.Quote(name))
	if near, ok := errtext.NearestLike(name, names); ok {
		text += fmt.Sprintf("; did you mean %s?", errtext.Quote(near))
	}
	return text
}

// entityOf returns the common entity of the rows of these nodes, or what is wrong with them. Rows without an entity
// have integer ids, and mix with rows of any entity that has integer ids.
func (g *Graph) entityOf(nodes []int) (all *registry.Entity, bad string) {
	for i, node := range nodes {
		switch e := g.Nodes[node].Entity; {
		case i == 0 || all == nil && !e.TextIDs():
			all = e
		case e != all && (e != nil || all.TextIDs()):
			return nil, fmt.Sprintf("mixes rows of different entities: %s of node %s and %s of node %s",
				label(all), g.Nodes[nodes[0]].label(), label(e), g.Nodes[node].label())
		}
	}
	return all, ""
}

// label names an entity.
func label(e *registry.Entity) string {
	if e == nil {
		return "integers without an entity"
	}
	return errtext.Quote(e.Name)
}

// passEntity finds which entity the rows have that a node takes, and those that it passes on. It returns what is
// wrong with rows that the node takes together.
func (g *Graph) passEntity(n *Node) (bad string) {
	inputs, bad := g.entityOf(n.Inputs)
	if bad != "" {
		return bad
	}
	n.InputEntity = inputs
	refs, bad := g.entityOf(n.Refs)
	if bad != "" {
		return bad
	}
	reads := func(of ColumnsOf) bool { return of != nil && slices.Contains(of(n, g.Registry), registry.IDKey) }
	id, refID := reads(n.Schema.Reads), reads(n.Schema.RefReads)
	if n.Schema.Inherits != InheritsNothing {
		n.Entity = inputs
	}
	switch all := n.Schema.Inherits == InheritsAll; {
	case all || id && refID:
		together, bad := g.entityOf(slices.Concat(n.Inputs, n.Refs))
		if bad != "" {
			return bad
		}
		if all {
			n.Entity = together
		}
	case len(n.Refs) > 0 && (id && inputs.TextIDs() || refID && refs.TextIDs()):
		return "compares the id of one side, which is a text, with a column of the other"
	}
	text := inputs
	if refs.TextIDs() {
		text = refs
	}
	switch {
	case n.comparesTextIDs() && !inputs.TextIDs():
		return fmt.Sprintf("compares the id with strings, and its rows are of %s, whose ids are integers", label(inputs))
	case !text.TextIDs():
	case n.Schema.IDs == RefusesTextIDs:
		return fmt.Sprintf("does not take rows of entity %s, whose ids are strings", label(text))
	case n.refusesTextIDs() != "":
		return fmt.Sprintf("does not take rows of entity %s, whose ids are strings: %s", label(text), n.refusesTextIDs())
	case n.Schema.IDs == MovesTextIDs && id:
		return fmt.Sprintf("reads the id, which is a string of entity %s; compare it with strings by ==, != or in, exclude by a list of strings, or read a column that has the value instead", label(text))
	}
	return ""
}

// refusesTextIDs says why what the op has prepared does not take ids that are texts; "": it does.
func (n *Node) refusesTextIDs() string {
	if own, ok := n.Prepared.(interface{ RefusesTextIDs() string }); ok {
		return own.RefusesTextIDs()
	}
	return ""
}

// comparesTextIDs reports whether an expression or a predicate of the node compares the id with texts, or what the op has prepared.
func (n *Node) comparesTextIDs() (compares bool) {
	if own, ok := n.Prepared.(interface{ TextIDs() bool }); ok && own.TextIDs() {
		return true
	}
	n.Params.each("", func(v *paramValue, _ string) {
		if tree, ok := v.object.(interface{ TextIDs() bool }); ok {
			compares = compares || tree.TextIDs()
		}
	})
	return compares
}
