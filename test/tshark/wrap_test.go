package tshark

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// psnSample is a capture of one connection, from its setup to its end.
const psnSample = "../../samples/rocev2-nfs3-basic.pcap.zst"

// shifted writes psnSample with all packet sequence numbers moved by delta, as
// if the queue pairs had started with others. It returns a PSN in the middle
// of an operation for each kind of them.
func shifted(t *testing.T, file string, delta uint32) (middle map[string]uint32) {
	t.Helper()
	r, err := capture.Open([]string{psnSample}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := capture.NewWriter(out, capture.WriterOptions{Format: capture.Pcap})
	var (
		batch capture.Batch
		f     link.Frame
		q     roce.Packet
		check roce.Checker
		psns  = map[string][]uint32{}
	)
	for {
		err := r.Read(&batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range batch.Packets {
			p := &batch.Packets[i]
			link.Decode(p.Link, p.Data, p.Length, &f)
			if f.Proto == link.UDP && f.DstPort == 4791 && roce.Decode(f.Payload, f.PayloadLen, &q) {
				bth := roce.BTH(f.Payload)
				switch q.Opcode.Service() {
				case roce.ServiceRC:
					bth.SetPSN((q.PSN + delta) & 0xffffff)
					if op := q.Opcode; !op.Starts() {
						switch {
						case op.IsSend():
							psns["Send"] = append(psns["Send"], q.PSN)
						case op.IsWrite():
							psns["Write"] = append(psns["Write"], q.PSN)
						case op.IsReadResponse():
							psns["Read"] = append(psns["Read"], q.PSN)
						}
					}
				case roce.ServiceUD:
					switch mad := ibcm.MAD(q.Payload); mad.Attribute() {
					case ibcm.AttributeREQ:
						m := ibcm.REQ(mad.Data())
						m.SetStartingPSN((m.StartingPSN() + delta) & 0xffffff)
					case ibcm.AttributeREP:
						m := ibcm.REP(mad.Data())
						m.SetStartingPSN((m.StartingPSN() + delta) & 0xffffff)
					}
				}
				n := len(f.Payload) - roce.ICRCSize
				sum, ok := check.Sum(f.Proto, f.Net, f.Transport, f.Payload[:n])
				if !ok {
					t.Fatal("no ICRC")
				}
				binary.LittleEndian.PutUint32(f.Payload[n:], sum)
			}
			if err := w.Write(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Flush(), out.Close()); err != nil {
		t.Fatal(err)
	}
	middle = map[string]uint32{}
	for kind, list := range psns {
		middle[kind] = list[len(list)/2]
	}
	return middle
}

// TestPSNWrap checks that it makes no difference where the PSNs wrap from 0xffffff to 0, and
// reports what tshark, if there is one, makes of it; not with -short: the comparison with tshark does (test/tshark/run).
func TestPSNWrap(t *testing.T) {
	dir := t.TempDir()
	same := filepath.Join(dir, "same.pcap")
	middle := shifted(t, same, 0)
	want := decodeCapture(t, same)
	tshark := ""
	var known map[string]bool
	expected := 0
	if found, err := lookUp(); err == nil && !testing.Short() {
		tshark = found
		known = knownFields(t, tshark)
		expected = upperValues(dissect(t, tshark, same, known))
	}
	for _, name := range []string{"Send", "Write", "Read"} {
		if _, ok := middle[name]; !ok {
			t.Errorf("the sample has no %s of several packets", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name+".pcap")
			shifted(t, file, (0-middle[name])&0xffffff)
			got := decodeCapture(t, file)
			if got.stats.BadICRC != 0 || got.stats.GoodICRC != want.stats.GoodICRC {
				t.Errorf("ICRCs: %d good, %d bad", got.stats.GoodICRC, got.stats.BadICRC)
			}
			if len(got.messages) != len(want.messages) {
				t.Fatalf("%d messages, want %d", len(got.messages), len(want.messages))
			}
			for i, m := range got.messages {
				o := want.messages[i]
				if !reflect.DeepEqual(m.header, o.header) || !reflect.DeepEqual(m.values, o.values) {
					t.Errorf("message %d, frame %d, differs: %v %v, want %v %v", i, m.last, m.header, m.values, o.header, o.values)
				}
				if m.tx.state != o.tx.state || m.tx.retransmits != o.tx.retransmits {
					t.Errorf("message %d, frame %d: %v, %d retransmits, want %v, %d", i, m.last, m.tx.state, m.tx.retransmits, o.tx.state, o.tx.retransmits)
				}
			}
			if tshark == "" {
				return
			}
			t.Logf("tshark finds %d of the %d values of RPC messages and file data that it finds without the wrap",
				upperValues(dissect(t, tshark, file, known)), expected)
		})
	}
}

// upperValues counts the values that are above the fabric.
func upperValues(rows map[uint64]*row) int {
	n := 0
	for _, r := range rows {
		for name, v := range r.values {
			if f := fieldByName[name]; f.level == messageLevel {
				n += len(v)
			}
		}
	}
	return n
}
