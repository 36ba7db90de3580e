package connections

import (
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// connectionAt is a connection all of whose fields that a listing shows are
// set: reflection finds a field that the list forgets.
func connectionAt(id int, r *rand.Rand) *Connection {
	c := &Connection{Connection: new(rdma.Connection)}
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[netip.Addr]() {
				a := netip.MustParseAddr("2001:db8::1%eth0")
				if r.IntN(2) == 0 {
					a = netip.AddrFrom4([4]byte{10, byte(r.Uint32()), 3, 4})
				}
				v.Set(reflect.ValueOf(a))
				return
			}
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.Array:
			for i := range v.Len() {
				fill(v.Index(i))
			}
		case reflect.Pointer:
			if v.Type() == reflect.TypeFor[*rdma.Tunnel]() && r.IntN(2) == 0 {
				v.Set(reflect.New(v.Type().Elem()))
				fill(v.Elem())
			}
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(r.Uint64()))
		case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
			v.SetUint(r.Uint64() & (1<<v.Type().Bits() - 1))
		case reflect.String:
			v.SetString("ended by a test")
		}
	}
	fill(reflect.ValueOf(c.Connection).Elem())
	fill(reflect.ValueOf(&c.Calls).Elem())
	c.Client = rdma.Side(r.IntN(2))
	c.ID = id
	c.Fabric, c.State = rdma.Fabric(r.IntN(int(rdma.UDP)+1)), rdma.State(r.IntN(int(rdma.Closed)+1))
	for i := range c.Setup {
		c.Setup[i].Message = rdma.SetupREQ + rdma.SetupMessage(r.IntN(int(rdma.SetupMessages-rdma.SetupREQ)))
		c.Setup[i].PrivateBytesLen = uint8(len(c.Setup[i].PrivateBytes))
	}
	// These belong to the current packet or event, to a connection that is part of another, and to a copy that is not read again.
	c.Stamp, c.Header, c.Reused, c.Turned, c.Settled = rdma.Stamp{}, rdma.Header{}, [2]rdma.Reused{}, false, false
	return c
}

func TestConnectionList(t *testing.T) {
	for _, limit := range []int{1 << 20, 20_000, 1} {
		r := rand.New(rand.NewPCG(1, 2))
		l := &List{limit: limit}
		all := make([]*Connection, 300)
		for _, i := range r.Perm(len(all)) {
			all[i] = connectionAt(i+1, r)
			l.Add(all[i])
		}
		for range 2 { // it can be read several times
			n := 0
			if err := l.Each(func(c *Connection) {
				if !reflect.DeepEqual(c, all[n]) {
					t.Fatalf("limit %d, %d:\n%+v, want\n%+v", limit, n, c, all[n])
				}
				n++
			}); err != nil || n != len(all) {
				t.Fatalf("%d listed, %v", n, err)
			}
		}
		if (limit == 1<<20) != (len(l.runs) == 0) {
			t.Errorf("limit %d: %d runs", limit, len(l.runs))
		}
		l.Close()
	}
}

// TestNoTemporaryFile counts what cannot be kept.
func TestNoTemporaryFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	r := rand.New(rand.NewPCG(1, 2))
	l := &List{limit: 5000}
	for i := range 100 {
		l.Add(connectionAt(i+1, r))
	}
	n := 0
	if err := l.Each(func(*Connection) { n++ }); err != nil || n == 0 || n+l.lost != 100 || l.err == nil {
		t.Errorf("%d listed, %d lost, %v, %v", n, l.lost, err, l.err)
	}
}
