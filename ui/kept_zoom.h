#pragma once

namespace saccade::ui {

class FigureView;
class Place;

/// Remembers which part of a chart is looked at, under `key`; nothing while all of it is.
void keep_zoom(const FigureView& view, Place& place, const char* key);
/// Looks at that part again. Before the chart has its first figure.
void restore_zoom(FigureView& view, const Place& place, const char* key);

}  // namespace saccade::ui
