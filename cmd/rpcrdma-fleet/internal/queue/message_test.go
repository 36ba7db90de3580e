package queue

import (
	"testing"
	"time"
)

func FuzzMessage(f *testing.F) {
	good, err := Task{Store: "s3://out?region=x", Job: unitID(1), Unit: unitID(2)}.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(Task{Store: "s3://out?region=x", Unit: unitID(2)}.Key(), good)
	f.Add("x", []byte(`{"version":1,"store":"s3://`))
	f.Fuzz(func(t *testing.T, key string, b []byte) {
		x, err := decodeTask(subjectPrefix+key, b)
		if err != nil {
			return
		}
		again, err := x.encode()
		if err != nil {
			t.Fatalf("%+v was read and cannot be written: %v", x, err)
		}
		if y, err := decodeTask(subject(x), again); err != nil || y != x {
			t.Fatalf("%+v becomes %+v, %v", x, y, err)
		}
	})
}

func FuzzRecord(f *testing.F) {
	r := Record{State: Running, Job: unitID(1), Worker: "w-1", Since: time.Unix(1, 0).UTC(), Crashes: []Crash{{Worker: "x", Time: time.Unix(2, 0).UTC(), Reason: "y"}}}
	good, err := r.encode()
	if err != nil {
		f.Fatal(err)
	}
	s := Sign{Host: "h", PID: 1, Unit: unitID(1), Ack: "$JS.ACK.x"}
	sign, err := s.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(sign)
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decodeRecord(b); err == nil {
			if _, err := r.encode(); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = decodeSign(b)
	})
}
