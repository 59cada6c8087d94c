#pragma once

namespace saccade::ui {

class Card;
class ComparisonTable;
class FittedTable;

/// Goes on to the columns that have no room beside those that are seen.
void add_columns_button(Card& card, FittedTable& view);
/// Copies the whole table, tab-separated.
void add_copy_button(Card& card, const ComparisonTable& table);

}  // namespace saccade::ui
