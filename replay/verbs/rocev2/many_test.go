package rocev2

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Many connections share a socket, and more is on its way to it than its buffer
// holds.
func TestManyConnections(t *testing.T) {
	for _, buffer := range []int{0, 100 << 10} {
		t.Run(fmt.Sprint(buffer), func(t *testing.T) { manyConnections(t, buffer) })
	}
}

func manyConnections(t *testing.T, buffer int) {
	const conns, size, rounds = 12, 1 << 20, 4
	server := provider(t, Options{CheckICRC: ICRCOwnID, Buffer: buffer})
	client := provider(t, Options{CheckICRC: ICRCOwnID, Buffer: buffer, Local: address(t)})
	at := address(t)
	done := make(chan error, conns)
	mem := make([]byte, size)
	for i := range mem {
		mem[i] = byte(i * 7 >> 4)
	}
	for i := range conns {
		s, c := connect(t, server, client, netip.AddrPortFrom(at, 0), verbs.Params{}, verbs.Params{})
		r, err := s.Register(mem, verbs.RemoteRead, verbs.OffsetAny)
		if err != nil {
			t.Fatal(err)
		}
		target := make([]byte, size)
		w, err := s.Register(target, verbs.RemoteRead|verbs.RemoteWrite, verbs.OffsetAny)
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- transfers(c, r, w, mem, size, rounds, i) }()
	}
	for range conns {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Logf("client %+v, server %+v", client.Stats(), server.Stats())
}

// transfers writes, and reads back what it has written, and what was there.
func transfers(c *Conn, r, w verbs.Region, mem []byte, size, rounds, seed int) error {
	out, in, back := make([]byte, size), make([]byte, size), make([]byte, size)
	var buf [8]verbs.Completion
	for round := range rounds {
		for i := range out {
			out[i] = byte(i*i>>5 + round + seed)
		}
		err := c.Post(
			verbs.WorkRequest{Op: verbs.OpWrite, Handle: w.Handle, Offset: w.Offset, Local: [][]byte{out}},
			verbs.WorkRequest{Op: verbs.OpRead, Signaled: true, Handle: r.Handle, Offset: r.Offset, Local: [][]byte{in}},
			verbs.WorkRequest{Op: verbs.OpRead, Signaled: true, Handle: w.Handle, Offset: w.Offset, Local: [][]byte{back}})
		if err != nil {
			return err
		}
		for got := 0; got < 2; {
			if err := c.Wait(); err != nil {
				return err
			}
			n := c.Poll(buf[:])
			for _, x := range buf[:n] {
				if x.Status != verbs.StatusSuccess {
					return c.Err()
				}
			}
			got += n
		}
		if !bytes.Equal(in, mem) || !bytes.Equal(back, out) {
			return fmt.Errorf("connection %d, round %d: wrong bytes", seed, round)
		}
	}
	return nil
}

// A Send and its answer allocate nothing.
func TestAllocations(t *testing.T) {
	server, client := provider(t, Options{}), provider(t, Options{Local: address(t)})
	in, out := make([]byte, 100), make([]byte, 100)
	recvs := verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: in[:50]}}}
	back := verbs.Params{Recvs: []verbs.RecvRequest{{Buffer: in[50:]}}}
	s, c := connect(t, server, client, netip.AddrPortFrom(address(t), 0), recvs, back)
	list := [][]byte{out[:40]}
	one := []verbs.WorkRequest{{Op: verbs.OpSend, Local: list}}
	var buf [4]verbs.Completion
	take := func(c *Conn, r verbs.Params) {
		for c.Poll(buf[:1]) == 0 {
			if err := c.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.PostRecv(r.Recvs...); err != nil {
			t.Fatal(err)
		}
	}
	exchange := func() {
		if err := c.Post(one...); err != nil {
			t.Fatal(err)
		}
		take(s, recvs)
		if err := s.Post(one...); err != nil {
			t.Fatal(err)
		}
		take(c, back)
	}
	for range 100 {
		exchange()
	}
	if n := testing.AllocsPerRun(2000, exchange); n > allowedAllocations {
		t.Errorf("%v allocations", n)
	}
}
