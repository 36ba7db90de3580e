package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcrdma/toolkit/internal/nearest"
)

// background is what a theme is made for.
type background uint8

const (
	anyBackground background = iota // the terminal is asked
	darkBackground
	lightBackground
)

// ink is a color on a light and on a dark background, as numbers of the palette or #rrggbb; empty is the color that
// the terminal uses anyway.
type ink struct{ light, dark string }

// theme is a set of colors.
type theme struct {
	background background
	plain      bool // no colors at all
	strong     bool // nothing faint, all bold
	colors     [tones]ink
}

// defaultInks are the colors unless a theme or the user has others.
var defaultInks = [tones]ink{
	good: {"2", "10"}, warn: {"3", "11"}, bad: {"1", "9"}, accent: {"4", "14"},
	part0: {"8", "7"}, part1: {"5", "13"}, part2: {"3", "11"}, part3: {"2", "10"}, part4: {"4", "12"},
	heat0: {"4", "4"}, heat1: {"6", "6"}, heat2: {"2", "10"}, heat3: {"3", "11"}, heat4: {"1", "9"},
}

// strongInks avoid what is hard to tell from the background: yellow on white, blue on black.
var strongInks = [tones]ink{
	good: {"22", "10"}, warn: {"94", "11"}, bad: {"1", "9"}, accent: {"18", "14"},
	part0: {"0", "15"}, part1: {"53", "13"}, part2: {"94", "11"}, part3: {"22", "10"}, part4: {"18", "14"},
	heat0: {"18", "14"}, heat1: {"18", "14"}, heat2: {"22", "10"}, heat3: {"94", "11"}, heat4: {"1", "9"},
}

var themeNames = []string{"auto", "dark", "light", "high-contrast", "none"}

// parseTheme finds a theme by its name.
func parseTheme(name string) (*theme, error) {
	t := &theme{colors: defaultInks}
	switch name {
	case "", "auto":
	case "dark":
		t.background = darkBackground
	case "light":
		t.background = lightBackground
	case "high-contrast":
		t.strong, t.colors = true, strongInks
	case "none":
		t.plain = true
	default:
		hint := ""
		if near := nearest.Names(name, themeNames); len(near) > 0 {
			hint = "; did you mean " + strings.Join(near, " or ") + "?"
		}
		return nil, fmt.Errorf("there is no theme %q%s (%s)", name, hint, strings.Join(themeNames, ", "))
	}
	return t, nil
}

// toneNames are the tones that the user can color.
var toneNames = map[string]tone{
	"good": good, "warn": warn, "bad": bad, "accent": accent,
	"call": part0, "pull": part1, "server": part2, "push": part3, "reply": part4,
	"heat1": heat1, "heat2": heat2, "heat3": heat3, "heat4": heat4,
}

// colorNames are the colors of the palette that all terminals have, in its order.
var colorNames = []string{
	"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
	"gray", "bright-red", "bright-green", "bright-yellow", "bright-blue", "bright-magenta", "bright-cyan", "bright-white",
}

var hexColor = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// parseColor reads a color: a name, a number of the palette of 256, #rrggbb, or "default".
func parseColor(s string) (string, error) {
	if i := slices.Index(colorNames, s); i >= 0 {
		return strconv.Itoa(i), nil
	}
	if n, err := strconv.ParseUint(s, 10, 8); err == nil {
		return strconv.FormatUint(n, 10), nil
	}
	switch {
	case s == "default":
		return "", nil
	case hexColor.MatchString(s):
		return s, nil
	}
	hint := ""
	if near := nearest.Names(s, colorNames); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return "", fmt.Errorf("%q is not a color%s (a name such as red or bright-blue, a number up to 255, #rrggbb, default)", s, hint)
}

// set changes the color of a tone, on any background.
func (t *theme) set(at tone, color string) {
	t.colors[at] = ink{color, color}
}
