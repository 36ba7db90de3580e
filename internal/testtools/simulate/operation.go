package simulate

// Operation is what a call does.
type Operation uint8

// Operations. Any stands for all of them.
const (
	Any Operation = iota
	Getattr
	Lookup
	Read
	Write
	Commit
	Open
	Delegreturn
	CreateSession
	recalled // the server's callback
)

// operations say what each is called and costs a server, besides moving its data.
var operations = [...]struct {
	name    string
	service int64 // nanoseconds
}{
	Any:     {name: "any"},
	Getattr: {"GETATTR", 8_000},
	Lookup:  {"LOOKUP", 12_000},
	Read:    {"READ", 18_000},
	Write:   {"WRITE", 22_000},
	Commit:  {"COMMIT", 30_000},
	Open:    {"OPEN", 25_000},

	Delegreturn:   {"DELEGRETURN", 20_000},
	CreateSession: {"CREATE_SESSION", 50_000},
	recalled:      {name: "CB_RECALL"},
}

func (o Operation) String() string { return operations[o].name }

// Mix is how often each operation is drawn, in relation to the others.
type Mix struct {
	Read, Write, Commit, Small, Open int
}

// draw decides what a call does.
func (n *network) draw(c *Call) {
	r := stream(n.seed, "operation", uint64(c.Index))
	m := n.Mix
	k := r.IntN(m.Read + m.Write + m.Commit + m.Small + m.Open)
	switch {
	case k < m.Read:
		c.Op = Read
	case k < m.Read+m.Write:
		c.Op = Write
	case k < m.Read+m.Write+m.Commit:
		c.Op = Commit
	case k >= m.Read+m.Write+m.Commit+m.Small:
		c.Op = Open
	case n.NFS4 || r.IntN(2) == 0:
		c.Op = Getattr
	default:
		c.Op = Lookup
	}
	if c.Op == Read || c.Op == Write {
		c.Size = n.Size
		if r.IntN(4) == 0 && n.Size > 4096 {
			c.Size = 4096 * (1 + r.IntN(n.Size/4096))
		}
	}
}
