package bench

import (
	"strings"
	"testing"
	"time"
)

// TestMiddle: of several rounds the one in the middle is shown, with the distance between the fastest and the slowest.
func TestMiddle(t *testing.T) {
	round := func(calls int, fail string) []*Result {
		return []*Result{{Job: "read", Calls: calls, Elapsed: time.Second, Err: fail}}
	}
	list := Middle([][]*Result{round(90, ""), round(120, ""), round(100, "")})
	if len(list) != 1 || list[0].Calls != 100 || list[0].Rounds != 3 || list[0].Spread != 0.3 {
		t.Errorf("%+v", list[0])
	}
	var text strings.Builder
	if err := Table(&text, list); err != nil || !strings.Contains(text.String(), "SPREAD") || !strings.Contains(text.String(), "30%") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if list = Middle([][]*Result{round(1, ""), round(2, "broken"), round(3, "")}); list[0].Err != "broken" || list[0].Rounds != 0 {
		t.Errorf("%+v", list[0])
	}
	if list = Middle([][]*Result{round(7, "")}); list[0].Calls != 7 || list[0].Rounds != 0 {
		t.Errorf("%+v", list[0])
	}
}
