package report

import "image/color"

// The hues are Okabe and Ito's (2008), which stay apart in the common kinds of colour blindness.
// Their yellow is darkened, for it vanishes on white, and their black is a grey that stands on
// both grounds. Order puts the hues that differ most first.
var palette = []hue{
	{"#0072b2", "#4aa8e0", color.RGBA{0x00, 0x72, 0xb2, 0xff}}, // blue
	{"#d55e00", "#f0803c", color.RGBA{0xd5, 0x5e, 0x00, 0xff}}, // vermilion
	{"#009e73", "#1fbf94", color.RGBA{0x00, 0x9e, 0x73, 0xff}}, // green
	{"#b0578d", "#d98cb9", color.RGBA{0xb0, 0x57, 0x8d, 0xff}}, // purple
	{"#c98500", "#f0b43c", color.RGBA{0xc9, 0x85, 0x00, 0xff}}, // orange
	{"#3a9bd0", "#8fd0f5", color.RGBA{0x3a, 0x9b, 0xd0, 0xff}}, // sky
	{"#8a8000", "#d8cc4a", color.RGBA{0x8a, 0x80, 0x00, 0xff}}, // olive, for yellow
	{"#5f6672", "#a8b0bd", color.RGBA{0x5f, 0x66, 0x72, 0xff}}, // grey, for black
}

// Colours of plots that stand for no point.
var (
	paperWhite  = color.Gray{0xff}
	axisGrey    = color.Gray{0x80}
	eventOrange = color.RGBA{0xf5, 0xe4, 0xc2, 0xff}
	warmUpGrey  = color.Gray{0xf1}
)

// hue is one colour on a light and on a dark ground.
type hue struct {
	light, dark string
	rgba        color.RGBA
}

// shapes are the marker shapes; see marker for their outlines.
var shapes = []string{"circle", "square", "triangle", "diamond", "wedge", "pentagon", "cross", "star"}

// dashes are the line patterns, as SVG dash arrays in user units; the first is solid.
var dashes = []string{"", "6 3", "2 3", "9 3 2 3"}

// look is how one point is drawn, everywhere in a report. The first 64 points differ in hue or
// shape; lines of the same hue differ in their dashes for the first 32.
type look struct {
	hue, shape, dash int
}

// lookOf gives the look of the i-th point of a report.
func lookOf(i int) look {
	n := len(palette)
	lap := i / n
	return look{hue: i % n, shape: (i + lap) % len(shapes), dash: lap % len(dashes)}
}

// shades go from few to many, light to dark on white and dark to light on a dark ground. They are
// greys with a touch of blue: only lightness carries meaning, which every kind of colour vision
// and paper keep, and none is taken for the hue of a point.
var shades = [heatLevels]hue{
	{"#e6ebf1", "#262d37", color.RGBA{0xe6, 0xeb, 0xf1, 0xff}},
	{"#cbd5e0", "#36414f", color.RGBA{0xcb, 0xd5, 0xe0, 0xff}},
	{"#a9b8c9", "#4b5a6c", color.RGBA{0xa9, 0xb8, 0xc9, 0xff}},
	{"#8497ad", "#64778d", color.RGBA{0x84, 0x97, 0xad, 0xff}},
	{"#5f758e", "#8799ae", color.RGBA{0x5f, 0x75, 0x8e, 0xff}},
	{"#3c526b", "#b1bfce", color.RGBA{0x3c, 0x52, 0x6b, 0xff}},
	{"#1a2c41", "#e2e9f0", color.RGBA{0x1a, 0x2c, 0x41, 0xff}},
}

// shadeInk is the colour of text on a shade, for a light and a dark ground: whichever of nearly
// black and white has the better contrast.
func shadeInk(shade int, dark bool) string {
	if (shade < heatLevels/2+1) != dark {
		return "#10141a"
	}
	return "#ffffff"
}
