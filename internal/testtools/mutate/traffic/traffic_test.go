package traffic

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate"
)

// verdicts counts how many InfiniBand packets have a good and a bad ICRC.
func verdicts(packets []capture.Packet) (good, bad int) {
	var c roce.Checker
	for i := range packets {
		p := &packets[i]
		var f link.Frame
		link.Decode(p.Link, p.Data, p.Length, &f)
		if f.Proto == link.RoCEv1 || f.Proto == link.InfiniBand || f.Proto == link.UDP && f.DstPort == 4791 {
			switch c.Check(&f) {
			case roce.Good:
				good++
			case roce.Bad:
				bad++
			}
		}
	}
	return good, bad
}

// The seeds are what their names say: of the fabrics that are decoded, with good
// checksums, and short.
func TestSeeds(t *testing.T) {
	fabrics := map[link.Proto]int{}
	for i, name := range Names() {
		p := Apply(uint8(i), nil)
		if len(p) < 5 || len(p) > 40 {
			t.Errorf("%s: %d packets", name, len(p))
		}
		if good, bad := verdicts(p); bad > 0 {
			t.Errorf("%s: %d good ICRCs, %d bad ones", name, good, bad)
		}
		for j := range p {
			var f link.Frame
			link.Decode(p[j].Link, p[j].Data, p[j].Length, &f)
			fabrics[f.Proto]++
			if f.Problem != link.NoProblem {
				t.Errorf("%s: packet %d: %s", name, j+1, f.Problem)
			}
		}
	}
	for _, p := range []link.Proto{link.UDP, link.TCP, link.RoCEv1, link.InfiniBand} {
		if fabrics[p] == 0 {
			t.Errorf("no packet of %d", p)
		}
	}
}

func sum(packets []capture.Packet) uint32 {
	h := crc32.NewIEEE()
	for i := range packets {
		p := &packets[i]
		h.Write(p.Data)
		for _, v := range []uint64{uint64(p.Time), uint64(p.Length), uint64(p.Tap), uint64(p.Link), p.Number} {
			h.Write([]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24), byte(v >> 32), byte(v >> 40), byte(v >> 48), byte(v >> 56)})
		}
	}
	return h.Sum32()
}

// Whatever the program: the seeds stay as they are, the limits hold, and the
// same program gives the same packets.
func TestApply(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var before []uint32
	for i := range Count() {
		before = append(before, sum(Apply(uint8(i), nil)))
	}
	changed, good, bad := 0, 0, 0
	const programs = 4000
	for n := range programs {
		program := make([]byte, rng.IntN(mutate.MaxSteps)*mutate.StepSize)
		for i := range program {
			program[i] = byte(rng.Uint32())
		}
		which := n % Count()
		p := Apply(uint8(which), program)
		size := 0
		for i := range p {
			size += len(p[i].Data)
			if len(p[i].Data) > MaxPacket+64 || p[i].Number != uint64(i+1) || int64(p[i].Length) < int64(len(p[i].Data)) {
				t.Fatalf("%x: packet %d of %d bytes", program, p[i].Number, len(p[i].Data))
			}
		}
		if len(p) > MaxPackets || size > MaxBytes+MaxPacket {
			t.Fatalf("%x: %d packets of %d bytes", program, len(p), size)
		}
		if x := sum(p); x != sum(Apply(uint8(which), program)) {
			t.Fatalf("%x gives two results", program)
		} else if x != before[which] {
			changed++
		}
		g, b := verdicts(p)
		good, bad = good+g, bad+b
	}
	for i := range Count() {
		if sum(Apply(uint8(i), nil)) != before[i] {
			t.Errorf("seed %d has changed", i)
		}
	}
	t.Logf("%d of %d changed something; %d packets with a good ICRC, %d with a bad one", changed, programs, good, bad)
	if changed < programs*9/10 || good < 8*bad {
		t.Errorf("%d of %d changed something; %d packets with a good ICRC, %d with a bad one", changed, programs, good, bad)
	}
}

// A single step of each kind changes the seeds for which it means anything.
func TestEachChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for op := range packetChanges {
		changed := 0
		for n := range 20 * Count() {
			s := mutate.Step{Op: uint8(op), At: byte(rng.Uint32()), Where: uint16(rng.Uint32()), Value: rng.Uint32()}
			if sum(Apply(uint8(n), mutate.Program(s))) != sum(Apply(uint8(n), nil)) {
				changed++
			}
		}
		if changed == 0 || op != Raw && changed < Count() {
			if op != Raw { // alone it changes nothing
				t.Errorf("change %d: %d of %d did anything", op, changed, 20*Count())
			}
		}
	}
}

// What grows is sealed: IP and UDP lengths, the ICRC, the CRC of FPDUs.
func TestSeal(t *testing.T) {
	grow := mutate.Step{Op: Grow, At: 8, Where: 24, Value: 16 | 0x100}
	for i, name := range Names() {
		p := Apply(uint8(i), mutate.Program(grow))
		if _, bad := verdicts(p); bad > 0 {
			t.Errorf("%s: %d bad ICRCs", name, bad)
		}
		for j := range p {
			var f link.Frame
			link.Decode(p[j].Link, p[j].Data, p[j].Length, &f)
			if f.Problem != link.NoProblem {
				t.Errorf("%s: packet %d: %s", name, j+1, f.Problem)
			}
		}
	}
	for i, name := range Names() {
		if name != "iWARP: MPA with CRC, NFSv3" {
			continue
		}
		checked := 0
		for at := range uint8(len(Apply(uint8(i), nil))) {
			p := Apply(uint8(i), mutate.Program(mutate.Step{Op: mutate.Xor, At: at, Where: 22, Value: 3}))
			var f link.Frame
			link.Decode(p[at].Link, p[at].Data, p[at].Length, &f)
			if u, err := iwarp.ParseFPDU(f.Payload); err == nil && len(f.Payload) > 60 {
				checked++
				if u.CRC() != u.Checksum() {
					t.Errorf("packet %d: wrong CRC", at+1)
				}
			}
		}
		if checked < 10 {
			t.Errorf("%d FPDUs", checked)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	program := make([]byte, 8*mutate.StepSize)
	for i := range program {
		program[i] = byte(rng.Uint32())
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		program[i%len(program)]++
		Apply(uint8(i), program)
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := loadAll(); err != nil {
			b.Fatal(err)
		}
	}
}
